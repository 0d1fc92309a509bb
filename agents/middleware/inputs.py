"""Whether an input fits its tool: the model's, and what a person makes of it."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.middleware.base import Tool
from agents.middleware.registry import ToolkitMissing, Toolset, toolset_for, toolset_of
from agents.models import Run
from agents.spec import AgentSpec


def checked_input(toolset: Toolset, name: str, raw_input: Any) -> tuple[Tool[Any], BaseModel] | str:
    """The tool and its checked input, or what is wrong, as the model should read it."""
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
    spec: AgentSpec, name: str, edited: dict[str, Any], run: Run | None = None
) -> str | None:
    """What is wrong with what a person made of a call's input; None when it may run so.

    `agents.services.approvals.InputCheck`. `run` is needed where the spec has a toolkit.
    """
    try:
        toolset = toolset_for(spec, has_left_out=True)
        if spec.toolkit and name not in toolset.tools:
            if run is None:
                raise ToolkitMissing
            toolset = toolset_of(run, spec, has_left_out=True)
        checked = checked_input(toolset, name, edited)
    except ToolkitMissing:
        return (
            "This call is one of a Python program's, which alone can check another input: change "
            "it there (agent.resume), or approve or reject it as it is."
        )
    if isinstance(checked, str):
        return checked
    tool, given = checked
    if tool.memory_edit is not None and tool.memory_edit(given) is not None:
        return "An edit cannot turn a call into a change of the memory: reject it and say so."
    if tool.trial is not None:
        return "An edit cannot turn a call into one that writes: reject it and say so."
    return None
