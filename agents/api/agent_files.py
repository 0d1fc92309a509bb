"""Endpoints for agents as YAML files: docs/guides/agent-files.md."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.agent_files.reading import MAX_BYTES
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import Flag, StrictSerializer, Text, read_body
from agents.middleware.registry import known_tool_names
from agents.models import Agent, TokenScope
from agents.selectors.visible import agent_named, agents_for
from agents.services.agent_definitions.files import carry_out_import, export_agent, plan_import
from agents.services.agent_definitions.rights import may_read_definition
from agents.services.errors import NotFound


class AgentFileShape(serializers.Serializer[object]):
    """An agent file, as exported."""

    slug = serializers.CharField()
    yaml = serializers.CharField()


class ImportBody(StrictSerializer):
    """An agent file. With `dry_run` nothing is stored.

    Send the `base` of a dry run to import only if the agent has not changed since.
    """

    yaml = Text(max_length=MAX_BYTES)
    dry_run = Flag(default=False)
    base = Text(required=False, max_length=64)


class ImportShape(serializers.Serializer[object]):
    """The result of an import or a dry run. `id` and `version` are null for a dry run."""

    slug = serializers.CharField()
    id = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    is_new = serializers.BooleanField()
    diff = serializers.ListField(child=serializers.CharField())
    base = serializers.CharField()


class ExportAgent(ApiView):
    """The endpoint `GET /agents/{id}/export`, for the owner and people who can view agents."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("export_agent", "Export an agent as a YAML file", answer=AgentFileShape)
    def get(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = agent_named(Agent.objects.all(), agent_id)
        may_see = agent is not None and (
            may_read_definition(user, agent) or agents_for(user).filter(pk=agent.pk).exists()
        )
        if agent is None or not may_see:
            raise NotFound(f"There is no agent {agent_id!r} that you may see.")
        return Response({"slug": agent.slug, "yaml": export_agent(agent, by=user)})


class ImportAgent(ApiView):
    """The endpoint `POST /agents/import`: stores an agent, or a new version of an existing one."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "import_agent",
        "Import an agent from a YAML file",
        body=ImportBody,
        answer=ImportShape,
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        body, user = read_body(ImportBody, request), person(request)
        tools = known_tool_names()
        if body["dry_run"]:
            plan, agent = plan_import(body["yaml"], by=user, known_tools=tools), None
        else:
            agent, plan = carry_out_import(
                body["yaml"], by=user, known_tools=tools, base=body.get("base")
            )
        return Response(
            {
                "slug": plan.slug,
                "id": agent.pk if agent else None,
                "version": agent.version if agent else None,
                "is_new": plan.is_new,
                "diff": plan.diff,
                "base": plan.base,
            }
        )
