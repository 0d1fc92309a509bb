"""Agents on the wire."""

from __future__ import annotations

import datetime
from typing import Any

from rest_framework import serializers

from agents.doors.rest.list_queries import ordering
from agents.doors.rest.serializers import PageQuery
from agents.kernel.options import known_options, option_defaults
from agents.kernel.relations import AgentRelation, relations
from agents.models import Agent, NetworkChoice, ToolProfile
from agents.services.agents import default_model, default_provider

AGENT_ORDER = {"slug": "slug", "name": "name"}


class AgentListQuery(PageQuery):
    ordering = ordering("slug", "name")


class AgentShape(serializers.Serializer[Agent]):
    """An agent, with the provider and model that a run started now would use."""

    id = serializers.CharField()
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    provider = serializers.SerializerMethodField()
    model = serializers.SerializerMethodField()

    def get_provider(self, agent: Agent) -> str:
        return agent.provider or default_provider()

    def get_model(self, agent: Agent) -> str:
        return agent.model or default_model(self.get_provider(agent))


class FallbackShape(serializers.Serializer[Agent]):
    """A model that goes on with a run."""

    provider = serializers.CharField()
    model = serializers.CharField()


class RelatedNames(serializers.ListField):
    """The names of the rows that an agent has of a feature."""

    child = serializers.CharField()

    def __init__(self, relation: AgentRelation) -> None:
        super().__init__(source="*", read_only=True)
        self.relation = relation

    def to_representation(self, data: Any) -> list[str]:
        """`data` is the agent."""
        return self.relation.names(data)


class AgentDetailShape(AgentShape):
    """What a person who may use it should know. Its prompt is for those who edit it.

    `max_tokens`, `max_cost` (US dollars) and `max_seconds` of one run are null for no limit.
    """

    version = serializers.IntegerField()
    fallbacks = FallbackShape(
        many=True, help_text="Models that go on when the one before is down, in this order."
    )
    profile = serializers.ChoiceField(choices=ToolProfile.choices)
    sandbox = serializers.BooleanField()
    network = serializers.ChoiceField(choices=NetworkChoice.choices)
    toolbox = serializers.CharField(allow_blank=True)
    subagents = serializers.SerializerMethodField()
    output_schema = serializers.JSONField(allow_null=True)
    mcp_tool = serializers.BooleanField(help_text="Whether MCP clients have it as a tool.")
    options = serializers.SerializerMethodField(help_text="Options of features by name.")
    max_turns = serializers.IntegerField()
    max_tokens = serializers.IntegerField(allow_null=True)
    max_cost = serializers.DecimalField(
        max_digits=12,
        decimal_places=6,
        allow_null=True,
        coerce_to_string=True,
    )
    max_seconds = serializers.IntegerField(allow_null=True)
    updated_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)

    def get_options(self, agent: Agent) -> dict[str, Any]:
        return {**option_defaults(), **known_options(agent.options)}

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared ones, and before the subagents the relations of features."""
        fields: dict[str, serializers.Field[Any, Any, Any, Any]] = {}
        for name, field in super().get_fields().items():
            if name == "subagents":
                fields.update({each.name: RelatedNames(each) for each in relations()})
            fields[name] = field
        return fields

    def get_subagents(self, agent: Agent) -> list[str]:
        return sorted(agent.subagents.values_list("name", flat=True))
