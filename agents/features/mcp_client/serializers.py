"""MCP servers in the REST API. Only operators see their addresses. Secrets are never included."""

from __future__ import annotations

import datetime
from typing import Any

from rest_framework import serializers

from agents.doors.rest.list_queries import ordering
from agents.doors.rest.serializers import PageQuery, StrictSerializer, Text
from agents.features.mcp_client.actions import EFFECTS
from agents.features.mcp_client.models import McpServer, McpTransport, NetworkChoice
from agents.features.mcp_client.protocol.definitions import offered_name
from agents.features.mcp_client.protocol.limits import MAX_TOOLS
from agents.features.mcp_client.queries import ToolDifference, differences

MCP_ORDER = {"slug": "slug"}


class McpListQuery(PageQuery):
    ordering = ordering("slug")


class McpToolShape(serializers.Serializer[Any]):
    """An accepted tool. `name` is its name for models, `tool` its name at the server."""

    name = serializers.CharField()
    tool = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    effect = serializers.ChoiceField(choices=EFFECTS)


class McpServerShape(serializers.Serializer[McpServer]):
    """`agents` are the slugs of its agents that you may use."""

    id = serializers.CharField()
    slug = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    transport = serializers.ChoiceField(choices=McpTransport.choices)
    enabled = serializers.BooleanField()
    tools = serializers.SerializerMethodField()
    agents = serializers.SerializerMethodField()

    def get_tools(self, row: McpServer) -> list[dict[str, Any]]:
        return [
            {
                "name": offered_name(row.slug, tool["name"]),
                "tool": tool["name"],
                "description": tool["description"],
                "effect": tool["effect"],
            }
            for tool in row.tools
        ]

    def get_agents(self, row: McpServer) -> list[str]:
        found: dict[str, list[str]] = self.context["agents"]
        return found.get(row.slug, [])


class FindingShape(serializers.Serializer[Any]):
    """A suspicious passage."""

    severity = serializers.CharField()
    description = serializers.CharField()
    match = serializers.CharField(allow_blank=True)


class DifferenceShape(serializers.Serializer[ToolDifference]):
    """A tool as it was accepted and as the server describes it now, in the words of the server."""

    tool = serializers.CharField(source="name")
    change = serializers.ChoiceField(choices=("new", "changed", "gone", "same"))
    before = serializers.SerializerMethodField()
    after = serializers.SerializerMethodField()
    findings = serializers.SerializerMethodField()

    def get_before(self, each: ToolDifference) -> str:
        return each.text("before")

    def get_after(self, each: ToolDifference) -> str:
        return each.text("after")

    def get_findings(self, each: ToolDifference) -> list[dict[str, Any]]:
        return [dict(FindingShape(found).data) for found in each.findings()]


class FoundShape(serializers.Serializer[McpServer]):
    """The last list of the server, which can be accepted by its `digest`."""

    digest = serializers.CharField(source="found_digest")
    differences = serializers.SerializerMethodField()
    refused = serializers.SerializerMethodField()

    def get_differences(self, row: McpServer) -> list[dict[str, Any]]:
        return [dict(DifferenceShape(each).data) for each in differences(row)]

    def get_refused(self, row: McpServer) -> list[dict[str, str]]:
        return [{"tool": name, "why": why} for name, why in row.found_refused]


class ReachedShape(serializers.Serializer[McpServer]):
    """The address of a server. `secret_names` are variables or headers, without their values."""

    command = serializers.CharField(allow_blank=True)
    arguments = serializers.ListField(child=serializers.CharField(allow_blank=True))
    toolbox = serializers.CharField(allow_blank=True)
    network = serializers.ChoiceField(choices=NetworkChoice.choices)
    allowed_hosts = serializers.ListField(child=serializers.CharField())
    sees_files = serializers.BooleanField()
    url = serializers.CharField(allow_blank=True)
    secret_names = serializers.ListField(child=serializers.CharField())
    call_seconds = serializers.IntegerField()
    problem = serializers.CharField(allow_blank=True)
    checked_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    updated_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)


class McpServerDetailShape(McpServerShape):
    """A server in detail.

    `reached` and `found` are null for people who only use it. `found` is also null if there is no
    list to accept.
    """

    reached = serializers.SerializerMethodField()
    found = serializers.SerializerMethodField()

    def get_reached(self, row: McpServer) -> dict[str, Any] | None:
        return dict(ReachedShape(row).data) if self.context["operator"] else None

    def get_found(self, row: McpServer) -> dict[str, Any] | None:
        if not self.context["operator"] or row.found is None:
            return None
        return dict(FoundShape(row).data)


class AcceptedToolBody(StrictSerializer):
    """`effect` external: each call requires approval, unless a policy allows it."""

    tool = Text(max_length=128)
    effect = serializers.ChoiceField(choices=EFFECTS, default="external")


class AcceptBody(StrictSerializer):
    """All tools that agents get from now on, of the list with this digest."""

    digest = Text(max_length=64)
    tools = serializers.ListField(child=AcceptedToolBody(), max_length=MAX_TOOLS)
