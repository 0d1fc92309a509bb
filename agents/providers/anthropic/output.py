"""Structured outputs of the Messages API: answers that the model cannot write otherwise.

The server takes less of JSON Schema than Vel does. What it would refuse, or would understand more
narrowly than it is meant, is left to the prompt; the engine checks the answer in both cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import anthropic

from agents.providers.base import Block

MAX_OPTIONAL = 24
"""Properties that may be missing, in the whole schema."""
MAX_UNIONS = 16
_SHAPES = ("type", "anyOf", "oneOf", "enum", "const")


def output_format(schema: Block) -> str:
    """`output_config.format` as JSON text; empty if the server cannot take `schema`."""
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
    """Whether the server itself keeps answers in a form, as `GET /v1/models/{id}` tells."""
    return supports(model_info, "structured_outputs")


def supports(model_info: object, capability: str) -> bool:
    """Whether what `GET /v1/models/{id}` answers says so."""
    told: object = model_info
    for name in ("capabilities", capability, "supported"):
        told = told.get(name) if isinstance(told, Mapping) else None
    return told is True


def _parts(schema: Block) -> Iterator[Block]:
    """The schema and all schemas within."""
    yield schema
    within = [*schema.get("properties", {}).values()]
    within += [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if isinstance(schema.get("items"), dict):
        within.append(schema["items"])
    for part in within:
        yield from _parts(part)


def _is_taken(part: Block) -> bool:
    """Whether the server means the same by it, or less strictly."""
    shapes = [word for word in _SHAPES if word in part and not (word == "type" and "enum" in part)]
    if len(shapes) != 1 or "allOf" in part or "prefixItems" in part:
        return False
    if any(isinstance(value, list | dict) for value in [*part.get("enum", ()), part.get("const")]):
        return False
    if part.get("type") == "object":
        # The server closes every object: one that may hold anything could hold nothing.
        return bool(part.get("properties")) and part.get("additionalProperties") in (None, False)
    if part.get("type") == "array":
        return isinstance(part.get("items"), dict)
    return isinstance(part.get("type", ""), str)
