"""Convert tool schemas for the Gemini API, which supports a part of JSON Schema.

Unsupported keywords are removed. This only loosens a schema, and the engine checks every input
against the complete one before a tool runs.
"""

from __future__ import annotations

from typing import Any

from agents.providers.base import Block

KEPT = frozenset(
    {
        "$ref", "type", "format", "title", "description", "enum", "minItems", "maxItems",
        "minimum", "maximum", "required",
    }
)  # fmt: skip
"""Keywords that are passed on unchanged. `pattern` is not: some dialects of it are refused."""
_SCHEMAS = ("properties", "$defs")
_LISTS = {"anyOf": "anyOf", "oneOf": "anyOf", "prefixItems": "prefixItems"}
_FORMATS = frozenset({"date-time", "date", "time", "enum", "int32", "int64", "float", "double"})


def parameters(schema: Block) -> Block | None:
    """Return a tool's `parametersJsonSchema`, or None without parameters.

    The API refuses an empty schema.
    """
    taken = _taken(schema)
    return taken if taken.get("properties") or "$ref" in taken or "anyOf" in taken else None


def _taken(schema: Any) -> Block:
    if not isinstance(schema, dict):  # `true` and `false` are schemas too
        return {}
    found: Block = {}
    for word, value in schema.items():
        if word == "definitions":
            word = "$defs"
        if word == "$ref":
            found["$ref"] = str(value).replace("#/definitions/", "#/$defs/")
        elif word in _SCHEMAS and isinstance(value, dict):
            found[word] = {name: _taken(each) for name, each in value.items()}
        elif word in _LISTS and isinstance(value, list):
            found[_LISTS[word]] = [_taken(each) for each in value]
        elif word == "items":
            found["items"] = _taken(value)
        elif word == "additionalProperties":
            found[word] = value if isinstance(value, bool) else _taken(value)
        elif word == "allOf" and isinstance(value, list) and len(value) == 1:
            found |= _taken(value[0])
        elif word == "const" and isinstance(value, str | int | float):
            _add_enum(found, [value])
        elif word == "enum" and isinstance(value, list):
            _add_enum(found, value)
        elif word == "format" and value not in _FORMATS:
            continue
        elif word in KEPT:
            found[word] = value
    if "required" in found:
        known = found.get("properties", {})
        found["required"] = [name for name in found["required"] if name in known]
        if not found["required"]:
            del found["required"]
    return found


def _add_enum(found: Block, values: list[Any]) -> None:
    """Add an enum of strings or of numbers. Other values are not supported."""
    plain = [value for value in values if value is not None]
    if plain and all(isinstance(value, str) for value in plain):
        found["enum"] = plain
        found.setdefault("type", "string")
    elif plain and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in plain
    ):
        found["enum"] = plain
