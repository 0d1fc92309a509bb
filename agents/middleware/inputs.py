"""Check inputs of tools: those of the model, and those edited by a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.middleware.base import Tool
from agents.middleware.input_names import input_names, same_field
from agents.middleware.registry import ToolkitMissing, Toolset, toolset_for, toolset_of
from agents.middleware.unknown_fields import unknown_fields
from agents.models import Run
from agents.spec import AgentSpec


def checked_input(toolset: Toolset, name: str, raw_input: Any) -> tuple[Tool[Any], BaseModel] | str:
    """Return the tool and its checked input, or the error message for the model."""
    tool = toolset.tools.get(name)
    if tool is None:
        known = ", ".join(toolset.tools)
        return f"There is no tool {name!r}. The tools are: {known}."
    if "\\u0000" in json.dumps(raw_input):
        return "The input holds a NUL character, which is not possible here."
    try:
        given = tool.input_model.model_validate(raw_input)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'input'}: {item['msg']}"
            for item in error.errors(include_url=False)[:5]
        )
        return f"The input of {name} does not fit: {problems}."
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
    """Return the input `before` with the fields of `changes`. A field may have several names.

    Raises `ToolkitMissing`.
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
