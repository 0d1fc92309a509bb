"""Validation of tool inputs: from the model, and edited by a person."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import AliasChoices, BaseModel, ValidationError

from agents.middleware.base import Tool
from agents.middleware.input_check import fitting_input
from agents.middleware.registry import ToolkitMissing, Toolset, toolset_for, toolset_of
from agents.models import Run
from agents.spec import AgentSpec


def checked_input(toolset: Toolset, name: str, raw_input: Any) -> tuple[Tool[Any], BaseModel] | str:
    """Return the tool and its validated input, or an error message for the model.

    The tool is its variant for this input, if it has one.
    """
    tool = toolset.tools.get(name)
    if tool is None:
        known = ", ".join(toolset.tools)
        return f"There is no tool {name!r}. The tools are: {known}."
    given = fitting_input(name, tool.input_model, raw_input)
    if isinstance(given, str):
        return given
    meant = tool.variant(given) if tool.variant is not None else None
    return meant or tool, given


def edited_input_problem(
    spec: AgentSpec,
    name: str,
    edited: dict[str, Any],
    before: Mapping[str, Any],
    run: Run | None = None,
) -> str | None:
    """Return why an input that a person has edited cannot run, or None if it can.

    Args:
        spec: The agent.
        name: The name of the tool.
        edited: The whole input that would run.
        before: The input that the person has seen.
        run: The run of the call. It is needed if the spec has a toolkit.
    """
    try:
        toolset = _toolset_with(spec, name, run)
    except ToolkitMissing:
        return (
            "This call is one of a Python program's, which alone can check another input: change "
            "it there (agent.resume), or approve or reject it as it is."
        )
    checked = checked_input(toolset, name, edited)
    if isinstance(checked, str):
        return checked
    tool, given = checked
    if unknown := unknown_fields(tool.input_model, edited, before):
        return _unknown(tool, unknown, edited)
    if (proposed := tool.proposed(given)) is not None:
        return proposed.kind.no_edit
    if tool.trial is not None:
        return "An edit cannot turn a call into one that writes: reject it and say so."
    return None


def with_changes(
    spec: AgentSpec, name: str, before: Mapping[str, Any], changes: Mapping[str, Any], run: Run
) -> dict[str, Any]:
    """Return the input `before` with the fields of `changes`.

    A field may have several names, and is replaced under each of them. Raises `ToolkitMissing`.
    """
    tool = _toolset_with(spec, name, run).tools.get(name)
    replaced = set(changes)
    if tool is not None:
        for group in same_field(tool.input_model):
            replaced |= group if group & set(changes) else set()
    return {**{key: value for key, value in before.items() if key not in replaced}, **changes}


def _toolset_with(spec: AgentSpec, name: str, run: Run | None) -> Toolset:
    toolset = toolset_for(spec, has_left_out=True)
    if not spec.toolkit or name in toolset.tools:
        return toolset
    if run is None:
        raise ToolkitMissing
    return toolset_of(run, spec, has_left_out=True)


def _unknown(tool: Tool[Any], unknown: Sequence[str], edited: Mapping[str, Any]) -> str:
    name = unknown[0]
    for group in same_field(tool.input_model):
        others = sorted(group & set(edited) - {name})
        if name in group and others:
            return (
                f"{name!r} and {others[0]!r} are names of the same field of {tool.name}: use one."
            )
    known = input_names(tool.input_model) or tool.input_model.model_json_schema()["properties"]
    return f"{tool.name} has no field {name!r}. Its fields are: {', '.join(sorted(known))}."


def input_names(model: type[BaseModel]) -> frozenset[str] | None:
    """Return the names of the fields that `model` accepts, or None if it accepts any."""
    return _names(model)


@lru_cache(maxsize=512)
def _names(model: Hashable) -> frozenset[str] | None:
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    if model.model_config.get("extra") == "allow":
        return None
    return frozenset().union(*_groups(model))


def same_field(model: type[BaseModel]) -> tuple[frozenset[str], ...]:
    """Return the names of each field of `model`, as one set for each field."""
    return _groups(model)


@lru_cache(maxsize=512)
def _groups(model: Hashable) -> tuple[frozenset[str], ...]:
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    by_name = bool(
        model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    )
    groups: list[frozenset[str]] = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        given = {choice for choice in choices if isinstance(choice, str)}
        if by_name or not given:
            given.add(name)
        groups.append(frozenset(given))
    return tuple(groups)


_COMBINED = ("allOf", "anyOf", "oneOf")


def unknown_fields(
    model: type[BaseModel], given: Mapping[str, Any], before: Mapping[str, Any]
) -> list[str]:
    """Return the paths of the fields in `given` that the class `model` lacks, like `items.0.nmae`.

    A second name of a field that is already given is unknown too: the tool would use only one of
    them. Top-level fields that are equal in `before`, the input that the language model gave, are
    omitted with everything inside: the person has not changed them. Other errors of the input are
    ignored.
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
    """Yield the paths of properties that a JSON schema neither declares nor explicitly allows."""
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
