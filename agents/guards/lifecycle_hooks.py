"""Hooks: an operator's code that is told what a run does, and can change nothing of it."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HookContext:
    """Which run it is. `turn` is the number of the model call, 0 before the first."""

    run_id: str
    thread_id: str
    owner_id: int
    agent: str
    """The agent's slug."""
    turn: int


Done = Awaitable[None] | None


class Hooks:
    """Subclass it and override the points to be told of; each is a method or an `async def`.

    They run in the worker, beside the engine, never inside a transaction; the run waits for each
    at most `seconds`. What they raise is logged and shown as an event `hook.failed`, and changes
    nothing. Each is told at least once: what a crash interrupts is done again and told again, so
    know it by (run_id, turn, call_id). All but `run_ended` are told before what they tell of is
    stored, so that a crash may also leave a thing told that has never been.
    """

    seconds: float = 10.0
    """How long the run waits for one call."""

    def run_started(self, context: HookContext) -> Done:
        """Before the first model call, with the message accepted by the guardrails."""

    def before_model_call(self, context: HookContext) -> Done:
        """`context.turn` is the call's number."""

    def after_model_call(
        self, context: HookContext, stop_reason: str, usage: dict[str, int]
    ) -> Done:
        """Before the reply is stored. `usage`: input, output, cache_read, cache_write tokens."""

    def before_tool(
        self, context: HookContext, call_id: str, tool: str, given: dict[str, Any]
    ) -> Done:
        """Right before a call is made, approved if it had to be."""

    def after_tool(
        self, context: HookContext, call_id: str, tool: str, text: str, is_error: bool
    ) -> Done:
        """Before its result is stored. `text` has passed the guardrails."""

    def approval_requested(self, context: HookContext, calls: list[dict[str, Any]]) -> Done:
        """Before the run parks. Each call: call_id, tool, input."""

    def run_ended(self, context: HookContext, status: str, code: str, message: str) -> Done:
        """Within seconds of the end, whoever ended it; once more where a failed run was resumed.

        `status`: completed, failed or cancelled; `code` and `message` of a failure.
        """


POINTS = (
    "run_started",
    "before_model_call",
    "after_model_call",
    "before_tool",
    "after_tool",
    "approval_requested",
    "run_ended",
)
ALIASES = {"onToolCall": "before_tool", "onError": "run_ended"}
"""Names of vel-ts. A method of that name is called at our point; `onError` for failures only."""
