"""Structured outputs of OpenAI's APIs: the server enforces the schema of answers.

The strict mode requires every property of every object and allows no others. Schemas with another
meaning in it are only in the prompt. The engine checks the answer in both cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agents.providers.base import Block

MAX_PROPERTIES = 5_000
MAX_DEPTH = 10
_TAKEN = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "description", "title", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
}  # fmt: skip
_FORMATS = {
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
}  # fmt: skip


def output_format(schema: Block) -> str:
    """Return the request as JSON text for a prompt's head; empty if `schema` is not supported."""
    if schema.get("type") != "object":
        return ""
    parts = list(_parts(schema, 1))
    count = sum(len(part.get("properties", ())) for part, _ in parts)
    if count > MAX_PROPERTIES or max(depth for _, depth in parts) > MAX_DEPTH:
        return ""
    if not all(_is_taken(part) for part, _ in parts):
        return ""
    form = {"type": "json_schema", "name": "answer", "strict": True, "schema": _closed(schema)}
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def as_format(form: str) -> Block:
    """Return the result of `output_format` in the format of the Responses API."""
    parsed: Block = json.loads(form)
    return parsed


def _parts(schema: Block, depth: int) -> Iterator[tuple[Block, int]]:
    """Yield the schema and all schemas inside it, with their depth."""
    yield schema, depth
    within: list[Any] = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    within.append(schema.get("items"))
    for part in within:
        if isinstance(part, dict):
            yield from _parts(part, depth + 1)


def _is_taken(part: Block) -> bool:
    """Return whether the server interprets the part in the same way."""
    if not set(part) <= _TAKEN or not ({"type", "anyOf", "enum", "const"} & set(part)):
        return False
    if part.get("format", "date") not in _FORMATS:
        return False
    kind = part.get("type")
    if kind == "object" or "properties" in part:
        # Every object is closed: one without declared properties would be empty.
        properties = part.get("properties", {})
        is_open = part.get("additionalProperties") not in (None, False)
        return bool(properties) and not is_open and set(part.get("required", ())) == set(properties)
    if kind == "array":
        return isinstance(part.get("items"), dict)
    return True


def _closed(part: Any) -> Any:
    if isinstance(part, list):
        return [_closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    closed: Block = {}
    for name, value in part.items():
        if name == "properties":
            closed[name] = {each: _closed(schema) for each, schema in value.items()}
        else:
            closed[name] = _closed(value) if name in ("items", "anyOf") else value
    if part.get("type") == "object" or "properties" in part:
        closed["additionalProperties"] = False
    return closed
