"""JSON schemas of tool inputs, shortened for the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from agents.providers.base import Block

_computed: WeakKeyDictionary[type[BaseModel], Block] = WeakKeyDictionary()
"""Schemas by model. Pydantic needs about a millisecond for each one."""

_DEFINITIONS = "#/$defs/"
_VALUES = frozenset({"default", "enum", "const", "examples"})
"""Keywords whose values are data, not schemas."""
_NAMED = frozenset({"properties", "patternProperties"})
"""Keywords whose values are schemas by name."""
_LEFT_OUT = frozenset({"title", "$defs"})


def wire_schema(model: type[BaseModel]) -> Block:
    """Return a tool's input schema without titles, nulls and references, to save tokens.

    Raw pydantic schemas are about twice the size. References to a definition that contains itself
    remain, with this definition. All callers share the result; do not change it.
    """
    schema = _computed.get(model)
    if schema is None:
        schema = _computed[model] = _schema_of(model)
    return schema


def _schema_of(model: type[BaseModel]) -> Block:
    raw = model.model_json_schema(by_alias=False)
    definitions = raw.get("$defs", {})
    recursive = _recursive(definitions)
    inlined = {name: node for name, node in definitions.items() if name not in recursive}
    top = _name_of(raw)
    schema: Block = _compact(raw if top is None else definitions[top], inlined)
    schema.setdefault("properties", {})
    schema.pop("description", None)
    if recursive:
        schema["$defs"] = {name: _compact(definitions[name], inlined) for name in sorted(recursive)}
    return schema


def _recursive(definitions: Block) -> set[str]:
    """Return the names of the definitions that contain themselves."""
    direct = {name: set(_references(node)) for name, node in definitions.items()}
    found: set[str] = set()
    for name in definitions:
        reached: set[str] = set()
        left = list(direct[name])
        while left:
            other = left.pop()
            if other not in reached:
                reached.add(other)
                left += direct[other]
        if name in reached:
            found.add(name)
    return found


def _references(node: Any) -> Iterator[str]:
    """Yield the names of the definitions to which a schema refers."""
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        name = _name_of(node)
        if name is not None:
            yield name
        for key, value in node.items():
            if key in _NAMED and isinstance(value, dict):
                yield from _references(list(value.values()))
            elif key not in _VALUES:
                yield from _references(value)


def _name_of(node: Block) -> str | None:
    """Return the name of the definition that a schema refers to."""
    reference = node.get("$ref")
    return reference.removeprefix(_DEFINITIONS) if isinstance(reference, str) else None


def _compact(node: Any, inlined: Block) -> Any:
    """Return a shorter schema, without references to the definitions `inlined`."""
    if isinstance(node, list):
        return [_compact(item, inlined) for item in node]
    if not isinstance(node, dict):
        return node
    node = _unwrapped(node, inlined)
    found: Block = {}
    for key, value in node.items():
        if key in _VALUES:
            if key != "default" or value not in (None, "", False):
                found[key] = value
        elif key in _NAMED and isinstance(value, dict):
            found[key] = {name: _compact(each, inlined) for name, each in value.items()}
        elif key in _LEFT_OUT or (key == "additionalProperties" and not _is_schema(value)):
            continue
        else:
            found[key] = _compact(value, inlined)
    return found


def _is_schema(value: Any) -> bool:
    """Return whether `value` is a schema, for example of other properties of a dictionary."""
    return isinstance(value, dict) and bool(value)


def _unwrapped(node: Block, inlined: Block) -> Block:
    """Return a schema with its definition, or its only alternative, instead of the reference.

    The description and the default of the field replace those of the definition.
    """
    while True:
        name = _name_of(node)
        options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
        if name in inlined:
            node = {**inlined[name], **_without(node, "$ref")}
        elif len(options) == 1:
            node = {**options[0], **_without(node, "anyOf")}
        else:
            return node


def _without(node: Block, key: str) -> Block:
    return {name: value for name, value in node.items() if name != key}
