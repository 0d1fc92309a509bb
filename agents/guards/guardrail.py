"""Guardrails: checks of what comes in, what goes out, and what tools are given and give back."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Decision:
    """What a check decided: made by `allow`, `replace` and `block`."""

    action: Literal["allow", "replace", "block"]
    text: str = ""
    """With `replace`: what stands in its place."""
    reason: str = ""
    """With `block`: told to the model and to the person, so it must not hold what was blocked."""


_ALLOW = Decision("allow")


def allow() -> Decision:
    """Let it pass as it is."""
    return _ALLOW


def replace(text: str) -> Decision:
    """Let `text` pass in its place."""
    return Decision("replace", text=text)


def block(reason: str) -> Decision:
    """Let it not pass. `reason` is told to the model and to the person."""
    return Decision("block", reason=reason)


@dataclass(frozen=True, slots=True)
class GuardContext:
    """Where a check stands. `turn` is the number of the model call, 0 before the first."""

    run_id: str
    thread_id: str
    owner_id: int
    agent: str
    """The agent's slug."""
    turn: int
    is_final: bool = False
    """In `check_output`: whether the reply would end the run. Others go with tool calls."""
    leaves_machine: bool = False
    """In `check_tool_call`: whether what the call is given can reach another machine."""


Answer = Decision | Awaitable[Decision]


class Guardrail:
    """Subclass it, give it a `name`, and override the checks that it makes.

    A check is a method or an `async def`. It runs beside the engine, never inside a transaction,
    and has `seconds`. One that raises, takes longer, or returns anything but a `Decision` blocks.
    After a crash a check may be made again for the same thing, never left out: nothing takes
    effect before its decision. An instance is shared by all runs of the process.
    """

    name: str = ""
    """By which agents choose it: lower case, digits, `-` and `_`. Unique."""
    description: str = ""
    """Beside its name in the admin."""
    for_every_agent: bool = False
    """Whether all runs have it, those of agents that do not choose it too."""
    seconds: float = 10.0
    """How long a check may take."""

    def check_input(self, context: GuardContext, text: str) -> Answer:
        """The person's message, before the model sees it. `replace` changes the stored message."""
        return allow()

    def check_output(self, context: GuardContext, text: str) -> Answer:
        """What the model says to the person: its text, and apart from it its thinking."""
        return allow()

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Answer:
        """A call before anybody is asked about it, and again before it is made.

        There is no `replace`: a call that somebody changed is neither what the model asked for
        nor what a person approved. It blocks.
        """
        return allow()

    def check_tool_result(
        self, context: GuardContext, tool: str, given: dict[str, Any], text: str
    ) -> Answer:
        """What a call gave back, errors too, before it is stored and before the model sees it."""
        return allow()


STAGES = ("check_input", "check_output", "check_tool_call", "check_tool_result")


def makes(guardrail: Guardrail, stage: str) -> bool:
    """Whether a guardrail has a check of its own at `stage`."""
    return getattr(type(guardrail), stage) is not getattr(Guardrail, stage)
