"""The input of a server's tool: its JSON Schema for models, and the check of their input.

Schemas are untrusted. References are resolved within a limit, patterns use RE2, and unknown
keywords are removed: the server checks its input again, so a looser schema is harmless.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, create_model, model_validator

from agents.structured_output.schema import FORMATS, MAX_ENUM, MAX_PATTERN, compile_pattern
from agents.structured_output.validation import problems_in

MAX_DEPTH = 12
MAX_PARTS = 500
"""Limit with all references resolved."""

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)
_LIMITS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_SEVERAL = ("anyOf", "oneOf", "allOf")


class SchemaUnusable(ValueError):
    """A schema cannot be used. The message has the reason, for a person."""


def usable_schema(raw: object) -> dict[str, Any]:
    """Return `raw` as a schema of an object, with limits of its cost.

    Keywords that cannot be checked within these limits are left out. Raises `SchemaUnusable`.
    """
    if not isinstance(raw, dict) or raw.get("type", "object") != "object":
        raise SchemaUnusable("its input is no JSON Schema of an object")
    read = _Reader(raw).read(raw, (), 0)
    properties = read.pop("properties", {})
    return {"type": "object", "properties": properties, **read}


@lru_cache(maxsize=1024)
def input_model(name: str, schema_text: str) -> type[BaseModel]:
    """Return a model that checks inputs by a schema from `usable_schema`."""
    schema: dict[str, Any] = json.loads(schema_text)

    class _Given(BaseModel):
        model_config = ConfigDict(extra="allow", protected_namespaces=())

        @model_validator(mode="before")
        @classmethod
        def _fits(cls, data: Any) -> Any:
            problems = problems_in(data, schema)
            if problems:
                raise ValueError("; ".join(str(problem) for problem in problems[:5]))
            return data

        @classmethod
        def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
            return schema

    return create_model(f"{name}_input", __base__=_Given)


class _Reader:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._parts = 0

    def read(self, node: Any, opened: tuple[str, ...], depth: int) -> dict[str, Any]:
        """Read `node`, which is inside the references `opened`."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise SchemaUnusable(f"its input has over {MAX_PARTS} parts")
        if depth > MAX_DEPTH or not isinstance(node, dict):
            return {}  # any value: the server checks it
        found: dict[str, Any] = {}
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in opened:
            target = self._target(reference)
            if target is not None:
                found = self.read(target, (*opened, reference), depth + 1)
        for word, value in node.items():
            kept = self._word(word, value, opened, depth)
            if kept is not None:
                found[word] = kept
        return found

    def _target(self, reference: str) -> Any:
        parts = reference.split("/")
        if len(parts) != 3 or parts[0] != "#" or parts[1] not in ("$defs", "definitions"):
            return None
        definitions = self._root.get(parts[1])
        if not isinstance(definitions, dict):
            return None
        return definitions.get(parts[2].replace("~1", "/").replace("~0", "~"))

    def _word(self, word: str, value: Any, opened: tuple[str, ...], depth: int) -> Any:
        """Return the allowed part of one word, or None."""
        if word == "properties" and isinstance(value, dict):
            return {name: self.read(inner, opened, depth + 1) for name, inner in value.items()}
        if word in _SEVERAL and isinstance(value, list) and value:
            return [self.read(inner, opened, depth + 1) for inner in value]
        if word in ("items", "additionalProperties"):
            if isinstance(value, bool):
                return value
            return self.read(value, opened, depth + 1) if isinstance(value, dict) else None
        return value if _is_kept(word, value) else None


def _is_kept(word: str, value: Any) -> bool:
    if word == "description":
        return isinstance(value, str)
    if word == "type":
        given = value if isinstance(value, list) else [value]
        return bool(given) and all(isinstance(name, str) and name in _TYPES for name in given)
    if word == "enum":
        return isinstance(value, list) and 0 < len(value) <= MAX_ENUM
    if word == "required":
        return isinstance(value, list) and all(isinstance(name, str) for name in value)
    if word in _COUNTS:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if word in _LIMITS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if word == "uniqueItems":
        return isinstance(value, bool)
    if word == "pattern":
        return _is_pattern(value)
    if word == "format":
        return isinstance(value, str) and value in FORMATS
    return word in ("const", "default")


def _is_pattern(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > MAX_PATTERN:
        return False
    try:
        compile_pattern(value)
    except re2.error:
        return False
    return True
