"""Create the toolkit of an agent: its functions and middleware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from agents import toolkits
from agents.middleware.custom.toolkit import Member, Toolkit, as_tools
from agents.sdk.config import DeepAgentConfig, SubagentConfig, functions, parts_of
from agents.sdk.environment.process import engine
from agents.sdk.errors import SetupError

T = TypeVar("T")


def toolkit_of(
    config: DeepAgentConfig, subagents: Sequence[SubagentConfig], earlier: Toolkit | None
) -> Toolkit:
    """Return the toolkit of an agent.

    `earlier` is the toolkit before a subagent was added, if any: its tools and middleware are kept.
    """
    own = {
        item.name: _named(f"The subagent {item.name}: tools", as_tools, functions(item.tools))
        for item in subagents
    }
    if earlier is not None:
        return replace(earlier, of_subagents=own, loop=None)
    return Toolkit(
        _named("tools", as_tools, functions(config.tools)),
        tuple(
            _named(f"middleware: {type(item).__name__}", Member.of, item)
            for item in config.middleware
        ),
        own,
        parts_of(config),
        files=config.program_files,
    )


def _named(argument: str, make: Callable[[Any], T], given: Any) -> T:
    """Return `make(given)`. Raises `SetupError` that starts with `argument` if this fails."""
    try:
        return make(given)
    except (TypeError, ValueError) as error:
        raise SetupError(f"{argument}: {error}") from error


def forget(made: Sequence[Toolkit], token: object) -> None:
    """Release the toolkits of an agent that was closed or collected."""
    for toolkit in made:
        toolkits.unbind(toolkit)
    engine.discard(token)
