"""Schemas of tools' inputs for the model."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from agents.providers.base import Block

_computed: WeakKeyDictionary[type[BaseModel], Block] = WeakKeyDictionary()
"""Schemas by model. Pydantic needs about a millisecond for each one."""


def wire_schema(model: type[BaseModel]) -> Block:
    """Return a tool's input schema without titles, nulls and references, which only cost tokens.

    Raw pydantic schemas are about twice the size. All callers share the result; do not change it.
    """
    schema = _computed.get(model)
    if schema is None:
        schema = _computed[model] = _schema_of(model)
    return schema


def _schema_of(model: type[BaseModel]) -> Block:
    raw = model.model_json_schema(by_alias=False)
    schema: Block = _compact(raw, raw.get("$defs", {}))
    schema.setdefault("properties", {})
    schema.pop("description", None)
    return schema


def _compact(node: Any, definitions: Block, *, names: bool = False) -> Any:
    """Return a shorter schema. With `names`, the keys of `node` are names of properties."""
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
