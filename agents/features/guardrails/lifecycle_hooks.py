"""Lifecycle hooks: code of operators that watches runs and cannot change them."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HookContext:
    """The run. `turn` is the number of the model call, 0 before the first."""

    run_id: str
    thread_id: str
    owner_id: int
    agent: str
    """The agent's slug."""
    turn: int


Done = Awaitable[None] | None


class Hooks:
    """Subclass it and override points. Each is a method or an `async def`.

    They run in the worker, outside the engine, never inside a transaction. The run waits for each
    at most `seconds`. An exception is logged, becomes an event `hook.failed`, and changes nothing.
    Each is called at least once: after a crash the interrupted step and its hooks are repeated, so
    identify it by (run_id, turn, call_id). All except `run_ended` are called before the row is
    stored, so after a crash a hook can know a step that does not exist.
    """

    seconds: float = 10.0
    """How long the run waits for one call."""

    def run_started(self, context: HookContext) -> Done:
        """Before the first model call, after the guardrails have accepted the message."""

    def before_model_call(self, context: HookContext) -> Done:
        """`context.turn` is the call's number."""

    def after_model_call(
        self, context: HookContext, stop_reason: str, usage: dict[str, int]
    ) -> Done:
        """Before the reply is stored. `usage`: input, output, cache_read, cache_write tokens."""

    def before_tool(
        self, context: HookContext, call_id: str, tool: str, given: dict[str, Any]
    ) -> Done:
        """Right before a call is made, after its approval. `given` is its input."""

    def after_tool(
        self, context: HookContext, call_id: str, tool: str, text: str, is_error: bool
    ) -> Done:
        """Before its result is stored. `text` has passed the guardrails."""

    def approval_requested(self, context: HookContext, calls: list[dict[str, Any]]) -> Done:
        """Before the run parks. Each call: call_id, tool, input."""

    def run_ended(self, context: HookContext, status: str, code: str, message: str) -> Done:
        """Within seconds of the end, for any cause; again after a failed run was resumed.

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
"""Names of vel-ts, each with its point. `onError` is called for failures only."""
