"""Refuse subagents that could not work in the profile of their agent."""

from __future__ import annotations

from agents.features.subagents.options import DefinedSubagents, SubagentOptions
from agents.middleware.definition_checks import check_has_commands, check_named_tools, refused
from agents.spec import SANDBOX_ONLY, AgentSpec


def check_subagents(spec: AgentSpec) -> None:
    """Raise `InvalidRequest` that starts with the option."""
    for item in spec.option(DefinedSubagents).subagents:
        place = f"subagents.{item.name}.tools"
        named = [(f"{place}.{at}", name) for at, name in enumerate(item.tools or ())]
        check_named_tools(spec, named)
        check_has_commands(spec, place, item.tools)
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


DEFINITION_CHECKS = (check_subagents,)
