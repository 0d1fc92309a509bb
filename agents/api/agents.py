"""Endpoints for the agents that a person can use."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.agent_templates.catalogue import AgentTemplate, agent_templates
from agents.api.serializers.agents import (
    AGENT_ORDER,
    AgentDetailShape,
    AgentListQuery,
    AgentShape,
)
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.named_agent import agent_of
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import ordered_page
from agents.doors.rest.serializers import StrictSerializer, Text, read_body, read_query
from agents.middleware.registry import known_tool_names
from agents.models import TokenScope
from agents.selectors.visible import agents_for
from agents.services.agent_definitions.templates import create_from_template


class NewAgentBody(StrictSerializer):
    """A new agent from a template. If `name` is empty, it is the name of the template."""

    template = Text(max_length=100)
    name = Text(max_length=100, default="", allow_blank=True)


class TemplateShape(serializers.Serializer[AgentTemplate]):
    """A template. `needs` lists the resources that an operator should provide, or is empty."""

    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    needs = serializers.CharField(allow_blank=True)


class TemplatesShape(serializers.Serializer[object]):
    results = TemplateShape(many=True)


class AgentTemplates(ApiView):
    """The endpoint `GET /agent-templates`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_agent_templates",
        "What an agent can begin with",
        query=StrictSerializer,
        answer=TemplatesShape,
    )
    def get(self, request: Request) -> Response:
        read_query(StrictSerializer, request)
        return Response(
            {"results": [TemplateShape(each).data for each in agent_templates().values()]}
        )


class Agents(ApiView):
    """The endpoints `GET /agents` and `POST /agents {template, name}`."""

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.MANAGE}

    @operation(
        "list_agents", "List agents that you may use", query=AgentListQuery, answer=Page(AgentShape)
    )
    def get(self, request: Request) -> Response:
        query = read_query(AgentListQuery, request)
        return ordered_page(
            agents_for(person(request)), AgentShape().to_representation, query, AGENT_ORDER
        )

    @operation(
        "create_agent",
        "Make an agent from a template",
        body=NewAgentBody,
        answers={201: AgentDetailShape},
        errors=(404,),
    )
    def post(self, request: Request) -> Response:
        body = read_body(NewAgentBody, request)
        agent = create_from_template(
            body["template"],
            name=body["name"],
            by=person(request),
            known_tools=known_tool_names(),
        )
        return Response(AgentDetailShape(agent).data, status=201)


class OneAgent(ApiView):
    """The endpoint `GET /agents/{id}`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_agent", "Read an agent", answer=AgentDetailShape)
    def get(self, request: Request, agent_id: str) -> Response:
        return Response(AgentDetailShape(agent_of(person(request), agent_id)).data)
