"""Templates for new agents: docs/agent-templates.md."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.agent_templates.catalogue import AgentTemplate, agent_templates
from agents.doors.rest.base import ApiView
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, Text, read_query
from agents.models import TokenScope


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
