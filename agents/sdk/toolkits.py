"""The toolkit of an agent: its functions and middleware, created once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents import toolkits
from agents.middleware.custom.toolkit import Member, Toolkit, as_tools
from agents.sdk.config import DeepAgentConfig, SubagentConfig, functions, parts_of
from agents.sdk.environment.process import engine
from agents.sdk.errors import SetupError


def toolkit_of(
    config: DeepAgentConfig, subagents: Sequence[SubagentConfig], earlier: Toolkit | None
) -> Toolkit:
    """Return the toolkit. `earlier` is the one before a new subagent: its middleware is kept."""
    try:
        own = {item.name: as_tools(functions(item.tools)) for item in subagents}
        if earlier is not None:
            return replace(earlier, of_subagents=own, loop=None)
        return Toolkit(
            as_tools(functions(config.tools)),
            tuple(Member.of(item) for item in config.middleware),
            own,
            parts_of(config),
        )
    except (TypeError, ValueError) as error:
        raise SetupError(str(error)) from error


def forget(toolkit: Toolkit, token: object) -> None:
    """Release the toolkit of an agent that was closed or collected."""
    toolkits.unbind(toolkit)
    engine.discard(token)
