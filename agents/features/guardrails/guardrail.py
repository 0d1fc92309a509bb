"""Guardrails: checks of messages, replies, calls of tools and their results."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a check. `allow`, `replace` and `block` return it."""

    action: Literal["allow", "replace", "block"]
    text: str = ""
    """With `replace`: the new text."""
    reason: str = ""
    """With `block`: for the model and the person, so it must not contain the blocked text."""


_ALLOW = Decision("allow")


def allow() -> Decision:
    """Let the text or call pass unchanged."""
    return _ALLOW


def replace(text: str) -> Decision:
    """Let `text` pass instead."""
    return Decision("replace", text=text)


def block(reason: str) -> Decision:
    """Stop the text or call. The model and the person get `reason`."""
    return Decision("block", reason=reason)


@dataclass(frozen=True, slots=True)
class GuardContext:
    """The run that is checked. `turn` is the number of the model call, 0 before the first."""

    run_id: str
    thread_id: str
    owner_id: int
    agent: str
    """The agent's slug."""
    turn: int
    is_final: bool = False
    """In `check_output`: whether the reply would end the run. Other replies have tool calls."""
    leaves_machine: bool = False
    """In `check_tool_call`: whether the input of the call can reach another machine."""


Answer = Decision | Awaitable[Decision]


class Guardrail:
    """Subclass it, give it a `name`, and override checks.

    A check is a method or an `async def`. It runs outside the engine, never inside a transaction,
    and has `seconds`. A check that raises, takes longer, or returns anything except a `Decision`
    blocks. After a crash a check can be repeated for the same text or call: nothing takes effect
    before its decision. All runs of the process share an instance.
    """

    name: str = ""
    """Agents choose it by this name: lower case, digits, `-` and `_`. Unique."""
    description: str = ""
    """Displayed after its name in the admin."""
    for_every_agent: bool = False
    """Whether all runs have it, also those of agents that do not choose it."""
    seconds: float = 10.0
    """Time limit of a check."""

    def check_input(self, context: GuardContext, text: str) -> Answer:
        """Check the person's message before the model sees it. `replace` changes the message."""
        return allow()

    def check_output(self, context: GuardContext, text: str) -> Answer:
        """Check a text of the model for the person and, separately, its thinking."""
        return allow()

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Answer:
        """Check a call before it is made.

        A call that needs approval is checked before the request, and again after the decision.
        `replace` blocks, because neither the model nor a person has approved the changed call.
        """
        return allow()

    def check_tool_result(
        self, context: GuardContext, tool: str, given: dict[str, Any], text: str
    ) -> Answer:
        """Check the result or error of a call before it is stored and sent to the model."""
        return allow()


STAGES = ("check_input", "check_output", "check_tool_call", "check_tool_result")


def makes(guardrail: Guardrail, stage: str) -> bool:
    """Return whether a guardrail overrides the check of a stage."""
    return getattr(type(guardrail), stage) is not getattr(Guardrail, stage)
