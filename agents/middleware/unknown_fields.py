"""Find the fields of an edited input that its tool would ignore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

_COMBINED = ("allOf", "anyOf", "oneOf")


def unknown_fields(
    model: type[BaseModel], given: Mapping[str, Any], before: Mapping[str, Any]
) -> list[str]:
    """Return the paths of the fields in `given` that `model` does not know, such as `items.0.nmae`.

    A second name of a field that is already given is unknown too: the tool would use only one of
    them. A field with the same value in `before`, the input of the model, is left out: the person
    has not changed it. An input that fails other checks of the model has no unknown fields.
    """
    if model.model_config.get("extra") == "allow":
        found = list(_undeclared(model.model_json_schema(), given, ()))
    else:
        found = _forbidden(model, given)
    unchanged = {name for name in given if name in before and given[name] == before[name]}
    return [".".join(map(str, path)) for path in found if path[0] not in unchanged]


def _forbidden(model: type[BaseModel], given: Mapping[str, Any]) -> list[tuple[str | int, ...]]:
    try:
        model.model_validate(given, extra="forbid")
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        return [item["loc"] for item in problems if item["type"] == "extra_forbidden"]
    return []


def _undeclared(
    schema: Mapping[str, Any], value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    """Find properties that a JSON schema neither declares nor explicitly allows."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for number, item in enumerate(value):
                yield from _undeclared(items, item, (*path, number))
    elif isinstance(value, dict):
        declared = _declared(schema)
        is_closed = bool(declared) and not _allows_others(schema)
        for name, inner in value.items():
            if name in declared:
                yield from _undeclared(declared[name], inner, (*path, name))
            elif is_closed:
                yield (*path, name)


def _alternatives(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for word in _COMBINED:
        for part in schema.get(word, ()):
            if isinstance(part, Mapping):
                yield from _alternatives(part)


def _declared(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for part in _alternatives(schema):
        for name, inner in part.get("properties", {}).items():
            found.setdefault(name, inner if isinstance(inner, Mapping) else {})
    return found


def _allows_others(schema: Mapping[str, Any]) -> bool:
    return any(
        part.get("additionalProperties", False) is not False or "patternProperties" in part
        for part in _alternatives(schema)
    )
