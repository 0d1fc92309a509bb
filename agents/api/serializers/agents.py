"""Serializers for agents."""

from __future__ import annotations

import datetime
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rest_framework import serializers

from agents.doors.rest.list_queries import ordering
from agents.doors.rest.serializers import PageQuery
from agents.kernel.options import json_value, labels_of, option_classes, without_none
from agents.kernel.relations import AgentRelation, relations
from agents.models import Agent
from agents.services.agent_definitions.actions import default_model, default_provider

AGENT_ORDER = {"slug": "slug", "name": "name"}


class AgentListQuery(PageQuery):
    ordering = ordering("slug", "name")
    of = serializers.ChoiceField(choices=["usable", "defined"], default="usable")


class AgentShape(serializers.Serializer[Agent]):
    """An agent, with the provider and model that a new run would use."""

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


_PLAIN: dict[Any, type[serializers.Field[Any, Any, Any, Any]]] = {
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    str: serializers.CharField,
}


def option_field(option: FieldInfo) -> serializers.Field[Any, Any, Any, Any]:
    """Return the read-only serializer field for an agent option."""
    kind, optional = without_none(option.annotation)
    more: dict[str, Any] = {"help_text": option.description or "", "read_only": True}
    if optional:
        more["allow_null"] = True
    if get_origin(kind) is Literal:
        labels = labels_of(option)
        return serializers.ChoiceField(choices=[*labels.items()], **more)
    if kind is float:  # as text, which keeps all digits
        return serializers.DecimalField(max_digits=None, decimal_places=6, **more)
    items = next(iter(get_args(kind)), None) if get_origin(kind) is tuple else None
    if isinstance(items, type) and issubclass(items, BaseModel):
        return _shape_of(items)(many=True, **more)
    return _PLAIN.get(kind, serializers.JSONField)(**more)


@cache
def _shape_of(model: type[BaseModel]) -> type[serializers.Serializer[Any]]:
    fields = {name: option_field(field) for name, field in model.model_fields.items()}
    name = f"{model.__name__.removesuffix('Model')}Shape"
    return type(name, (serializers.Serializer,), {"__doc__": model.__doc__, **fields})


class RelatedNames(serializers.ListField):
    """The names of the objects to which an `AgentRelation` of a feature links an agent."""

    child = serializers.CharField()

    def __init__(self, relation: AgentRelation) -> None:
        super().__init__(source="*", read_only=True)
        self.relation = relation

    def to_representation(self, data: Any) -> list[str]:
        """Return the names of the objects to which this relation links the agent `data`."""
        return self.relation.names(data)


class AgentDetailShape(AgentShape):
    """An agent, for people who can use it. The prompt is visible only to people who can edit it.

    `max_tokens`, `max_cost` (US dollars) and `max_seconds` of one run are null for no limit.
    """

    version = serializers.IntegerField()
    is_active = serializers.BooleanField(help_text="Not archived: people can start runs with it.")
    mcp_tool = serializers.BooleanField(help_text="Whether MCP clients have it as a tool.")
    options = serializers.SerializerMethodField(help_text="Options of features by name.")
    updated_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)

    def get_options(self, agent: Agent) -> dict[str, Any]:
        return {
            name: json_value(getattr(agent, name))
            for kind in option_classes()
            if kind.listed is None
            for name in kind.model_fields
        }

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the declared fields, the listed options and the relations of features."""
        return {
            **super().get_fields(),
            **{
                name: option_field(kind.model_fields[name])
                for kind in option_classes()
                for name in kind.listed or ()
            },
            **{each.name: RelatedNames(each) for each in relations()},
        }
