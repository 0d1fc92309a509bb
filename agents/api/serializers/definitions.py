"""Serializers of definitions of agents. Their fields are those of agent files."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from typing import Any

from rest_framework import serializers

from agents.agent_files.shape import file_class, file_fields
from agents.doors.rest.serializers import StrictSerializer, Text
from agents.models import AgentVersion
from agents.spec import AgentSpec

SLUG = r"^[-a-zA-Z0-9_]{1,100}$"
_LEFT_OUT = ("title", "$defs", "default")
"""Keys that would add unwanted names and values to generated clients."""


class DefinitionField(serializers.Field[Any, Any, Any, Any]):
    """A field of an agent file. The service checks its value."""

    def __init__(self, *, field: str, **options: Any) -> None:
        super().__init__(**options)
        self.field = field

    @property
    def json_schema(self) -> dict[str, Any]:
        """Its part of the JSON schema of agent files."""
        return field_schemas()[self.field]

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        """Let null through: the schema says for which fields it is a value."""
        return (True, None) if data is None else super().validate_empty_values(data)

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@cache
def field_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field, without references."""
    whole = file_class().model_json_schema()
    known = whole.get("$defs", {})
    return {name: _inlined(each, known, ()) for name, each in whole["properties"].items()}


def _inlined(schema: Any, known: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, known, inside) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        # A recursive part can have any value here; the service checks it.
        return {} if name in inside else _inlined(known[name], known, (*inside, name))
    return {
        key: {name: _inlined(each, known, inside) for name, each in value.items()}
        if key == "properties"
        else _inlined(value, known, inside)
        for key, value in schema.items()
        if key not in _LEFT_OUT
    }


def _owner(**options: Any) -> Text:
    words = "The username of its owner, or null. Changing it is for staff."
    return Text(max_length=200, allow_null=True, help_text=words, **options)


class AgentBody(StrictSerializer):
    """Fields of an agent file, and its owner."""

    owner = _owner(required=False)
    slug = serializers.RegexField(SLUG, required=False)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            name: DefinitionField(field=name, required=False, help_text=field.description or "")
            for name, field in file_fields().items()
        } | super().get_fields()


class NewAgentBody(AgentBody):
    """A new agent, from a template or from fields of an agent file."""

    template = Text(max_length=100, default="", allow_blank=True)
    name = Text(max_length=100, default="", allow_blank=True)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {name: each for name, each in super().get_fields().items() if name != "owner"}


class DefinitionShape(serializers.Serializer[Any]):
    """All fields of an agent file, and the username of its owner."""

    owner = serializers.CharField(allow_null=True)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            name: DefinitionField(field=name, help_text=field.description or "")
            for name, field in file_fields().items()
        } | super().get_fields()


class VersionShape(serializers.Serializer[AgentVersion]):
    """A version of an agent. `changed` are the fields that differ from the version before."""

    number = serializers.IntegerField()
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    created_by = serializers.SerializerMethodField()
    changed = serializers.SerializerMethodField()

    def get_created_by(self, row: AgentVersion) -> str | None:
        return None if row.created_by is None else row.created_by.get_username()

    def get_changed(self, row: Any) -> list[str]:
        if row.spec_before is None:
            return []
        before, after = AgentSpec.completed(row.spec_before), AgentSpec.completed(row.spec)
        return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


class VersionDetailShape(serializers.Serializer[AgentVersion]):
    """A version with all values that its runs use, also the effective provider and model."""

    number = serializers.IntegerField()
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    created_by = serializers.SerializerMethodField()
    spec = serializers.JSONField()

    get_created_by = VersionShape.get_created_by
