"""A tool's input as the model is told of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents.providers.base import Block


def wire_schema(model: type[BaseModel]) -> Block:
    """A tool's input schema without what only costs tokens: titles, nulls, indirections.

    Raw pydantic schemas are about twice the size.
    """
    raw = model.model_json_schema(by_alias=False)
    schema: Block = _compact(raw, raw.get("$defs", {}))
    schema.setdefault("properties", {})
    schema.pop("description", None)
    return schema


def _compact(node: Any, definitions: Block, *, names: bool = False) -> Any:
    """`names`: the keys of `node` are names of properties, not words of JSON Schema."""
    if isinstance(node, list):
        return [_compact(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {key: _compact(value, definitions) for key, value in node.items()}
    if "$ref" in node:
        return _compact(definitions[node["$ref"].removeprefix("#/$defs/")], definitions)
    options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        node = {**options[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    return {
        key: _compact(value, definitions, names=key == "properties")
        for key, value in node.items()
        if key not in ("title", "additionalProperties", "$defs")
        and not (key == "default" and value in (None, "", False))
    }
