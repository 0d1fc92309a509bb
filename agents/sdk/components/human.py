"""Approval of tool calls as a component."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.config import DeepAgentConfig, checked_rules
from agents.sdk.errors import SetupError


class HumanInTheLoopMiddleware(BuiltInMiddleware):
    """Approval for calls of the tools in `interrupt_on`.

    Each tool has the value True, False (never), or a rule (docs/guides/policy.md).

    >>> approvals = HumanInTheLoopMiddleware({"execute": True})
    >>> approvals.should_interrupt("execute"), approvals.should_interrupt("ls")
    (True, False)
    >>> agent = create_deep_agent(middleware=[approvals])
    """

    name = "human_in_the_loop"
    leave_out = "no interrupt_on"
    adds_up = True

    def __init__(self, interrupt_on: Mapping[str, Any] | None = None) -> None:
        self.interrupt_on = checked_rules({} if interrupt_on is None else interrupt_on)

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        for tool, rule in self.interrupt_on.items():
            if config.interrupt_on.get(tool, rule) != rule:
                raise SetupError(
                    f"interrupt_on: {tool} has another value in the HumanInTheLoopMiddleware: "
                    "leave one out."
                )
        return replace(config, interrupt_on={**self.interrupt_on, **config.interrupt_on})

    def should_interrupt(self, tool_name: str) -> bool:
        """Return whether a call of the tool requires approval according to `interrupt_on`."""
        return bool(self.interrupt_on.get(tool_name, False))
