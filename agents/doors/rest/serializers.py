"""Strict parsing of bodies and queries: wrong types and unknown names are errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

MAX_NAMED = 10
"""Maximum number of unknown fields in an error; a body may have a hundred thousand."""


class Text(serializers.CharField):
    """A string, unchanged: numbers are not converted and whitespace is not trimmed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class AgentField(Text):
    """The name of an agent in bodies and queries, as in paths: its id or its slug.

    `agents.selectors.visible.agent_named` finds it, and `of_agent` filters rows by it.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("help_text", "The id or the slug of an agent.")
        super().__init__(**{"max_length": 100, **options})


class Flag(serializers.Field[bool, object, bool, Any]):
    """A boolean. Only true and false are accepted."""

    default_error_messages = {"invalid": "Must be true or false."}

    def to_internal_value(self, data: object) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class JsonObject(serializers.Field[Any, object, Any, Any]):
    """A JSON object, unchanged. The service checks its contents."""

    default_error_messages = {"invalid": "Must be an object."}

    def to_internal_value(self, data: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return data


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that rejects unknown fields by name, so that misspelled ones are not ignored."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, Mapping):
            known = ", ".join(self.fields)
            unknown = sorted(str(name) for name in data if name not in self.fields)
            if unknown:
                raise ValidationError(
                    {
                        name[:100]: [f"Unknown; known are: {known or 'none'}."]
                        for name in unknown[:MAX_NAMED]
                    }
                )
        return super().to_internal_value(data)


class PageQuery(StrictSerializer):
    """A page of a list."""

    cursor = serializers.RegexField(r"\A[0-9A-Za-z_-]{1,1500}\Z", required=False)
    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)


def read_body(kind: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the fields of the body. Raises `ValidationError` with the invalid fields."""
    return _checked(kind(data=request.data))


def read_query(kind: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """Return the query parameters, validated by `kind`.

    Raises `ValidationError`, also if a parameter is given more than once.
    """
    twice = [name for name, given in request.query_params.lists() if len(given) > 1]
    if twice:
        raise ValidationError({name[:100]: ["Given more than once."] for name in twice[:MAX_NAMED]})
    return _checked(kind(data=request.query_params.dict()))


def _checked(serializer: StrictSerializer) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
