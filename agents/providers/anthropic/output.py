"""Structured outputs of the Messages API: the server enforces the schema of answers.

The server supports a part of JSON Schema. Schemas that it would refuse, or interpret more strictly,
are only in the prompt. The engine checks the answer in both cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import anthropic

from agents.providers.base import Block

MAX_OPTIONAL = 24
"""Limit of optional properties in the whole schema."""
MAX_UNIONS = 16
_SHAPES = ("type", "anyOf", "oneOf", "enum", "const")


def output_format(schema: Block) -> str:
    """Return `output_config.format` as JSON text; empty if the server does not support `schema`."""
    if schema.get("type") != "object" or not all(map(_is_taken, _parts(schema))):
        return ""
    optional = sum(
        len(set(part["properties"]) - set(part.get("required", ())))
        for part in _parts(schema)
        if "properties" in part
    )
    unions = sum("anyOf" in part or "oneOf" in part for part in _parts(schema))
    if optional > MAX_OPTIONAL or unions > MAX_UNIONS:
        return ""
    wanted = {"type": "json_schema", "schema": anthropic.transform_schema(schema)}
    return json.dumps(wanted, ensure_ascii=False, separators=(",", ":"))


def supports_output_format(model_info: object) -> bool:
    """Return whether the server enforces a schema, by `GET /v1/models/{id}`."""
    return supports(model_info, "structured_outputs")


def supports(model_info: object, capability: str) -> bool:
    """Return whether `GET /v1/models/{id}` reports the capability."""
    told: object = model_info
    for name in ("capabilities", capability, "supported"):
        told = told.get(name) if isinstance(told, Mapping) else None
    return told is True


def _parts(schema: Block) -> Iterator[Block]:
    """Yield the schema and all schemas inside it."""
    yield schema
    within = [*schema.get("properties", {}).values()]
    within += [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if isinstance(schema.get("items"), dict):
        within.append(schema["items"])
    for part in within:
        yield from _parts(part)


def _is_taken(part: Block) -> bool:
    """Return whether the server interprets the part in the same way, or less strictly."""
    shapes = [word for word in _SHAPES if word in part and not (word == "type" and "enum" in part)]
    if len(shapes) != 1 or "allOf" in part or "prefixItems" in part:
        return False
    if any(isinstance(value, list | dict) for value in [*part.get("enum", ()), part.get("const")]):
        return False
    if part.get("type") == "object":
        # The server allows no additional properties: an object without declared ones would be
        # empty.
        return bool(part.get("properties")) and part.get("additionalProperties") in (None, False)
    if part.get("type") == "array":
        return isinstance(part.get("items"), dict)
    return isinstance(part.get("type", ""), str)
