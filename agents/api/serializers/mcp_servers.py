"""MCP servers on the wire: how they are reached only for operators, and secrets for nobody."""

from __future__ import annotations

import datetime
from typing import Any

from rest_framework import serializers

from agents.doors.rest.list_queries import ordering
from agents.doors.rest.serializers import PageQuery, StrictSerializer, Text
from agents.mcp.limits import MAX_TOOLS
from agents.mcp.names import offered_name
from agents.models import McpServer, McpTransport, NetworkChoice
from agents.selectors.mcp_servers import ToolDifference, differences
from agents.services.mcp_tools import EFFECTS

MCP_ORDER = {"slug": "slug"}


class McpListQuery(PageQuery):
    ordering = ordering("slug")


class McpToolShape(serializers.Serializer[Any]):
    """An accepted tool. `name` is what models call it, `tool` what its server does."""

    name = serializers.CharField()
    tool = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    effect = serializers.ChoiceField(choices=EFFECTS)


class McpServerShape(serializers.Serializer[McpServer]):
    """`agents` are the slugs of those that have it and that you may use."""

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
    """What a reader should look at."""

    severity = serializers.CharField()
    description = serializers.CharField()
    match = serializers.CharField(allow_blank=True)


class DifferenceShape(serializers.Serializer[ToolDifference]):
    """A tool as it is accepted and as the server says now; both are the server's own words."""

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
    """What the server said last, to be accepted by its `digest`."""

    digest = serializers.CharField(source="found_digest")
    differences = serializers.SerializerMethodField()
    refused = serializers.SerializerMethodField()

    def get_differences(self, row: McpServer) -> list[dict[str, Any]]:
        return [dict(DifferenceShape(each).data) for each in differences(row)]

    def get_refused(self, row: McpServer) -> list[dict[str, str]]:
        return [{"tool": name, "why": why} for name, why in row.found_refused]


class ReachedShape(serializers.Serializer[McpServer]):
    """How it is reached. `secret_names` are variables or headers; their values are never told."""

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
    """`reached` and `found` are null for who only uses it; `found` also when there is nothing to
    be accepted."""

    reached = serializers.SerializerMethodField()
    found = serializers.SerializerMethodField()

    def get_reached(self, row: McpServer) -> dict[str, Any] | None:
        return dict(ReachedShape(row).data) if self.context["operator"] else None

    def get_found(self, row: McpServer) -> dict[str, Any] | None:
        if not self.context["operator"] or row.found is None:
            return None
        return dict(FoundShape(row).data)


class AcceptedToolBody(StrictSerializer):
    """`effect` external: each call asks a person, unless a policy says otherwise."""

    tool = Text(max_length=128)
    effect = serializers.ChoiceField(choices=EFFECTS, default="external")


class AcceptBody(StrictSerializer):
    """All tools that agents have from now on, of the list with this digest."""

    digest = Text(max_length=64)
    tools = serializers.ListField(child=AcceptedToolBody(), max_length=MAX_TOOLS)
