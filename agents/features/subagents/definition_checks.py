"""Refuse subagents that could not work as defined, and tools of agents that cannot delegate."""

from __future__ import annotations

from collections.abc import Iterable

from agents.features.subagents.inputs import FORMS
from agents.features.subagents.options import DefinedSubagents, SubagentOptions
from agents.middleware.definition_checks import check_has_commands, check_named_tools, refused
from agents.spec import SANDBOX_ONLY, AgentSpec


def check_subagents(spec: AgentSpec) -> None:
    """Raise `InvalidRequest` for subagents and delegating tools that cannot work as defined.

    The message starts with the name of the option.
    """
    for item in spec.option(DefinedSubagents).subagents:
        place = f"subagents.{item.name}.tools"
        named = [(f"{place}.{at}", name) for at, name in enumerate(item.tools or ())]
        check_named_tools(spec, named)
        check_has_commands(spec, place, item.tools)
        _check_depth(spec, named, 2)
    _check_depth(spec, [(f"tools.{at}", name) for at, name in enumerate(spec.tools or ())], 1)
    options = spec.option(SubagentOptions)
    if spec.profile == SANDBOX_ONLY and options.background_subagents:
        raise refused(
            "background_subagents",
            f"an agent with the profile {SANDBOX_ONLY} waits for its subagents. Turn it off.",
        )
    if spec.profile == SANDBOX_ONLY and options.subagent_depth > 1:
        raise refused(
            "subagent_depth",
            f"subagents of an agent with the profile {SANDBOX_ONLY} delegate nothing. Give 0 or 1.",
        )


def _check_depth(spec: AgentSpec, named: Iterable[tuple[str, str]], least: int) -> None:
    """Refuse tools that delegate, each with its place, below this depth."""
    if spec.option(SubagentOptions).subagent_depth >= least:
        return
    for place, name in named:
        if name in FORMS:
            raise refused(
                place,
                f"{name} delegates, which needs a subagent_depth of {least} here. Leave the tool "
                "out, or change the depth.",
            )


DEFINITION_CHECKS = (check_subagents,)
