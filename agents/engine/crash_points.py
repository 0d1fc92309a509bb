"""Named points in the execution of a run at which a test can kill the process."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class CrashPoint(StrEnum):
    CLAIMED = "claimed"
    REPLIED = "replied"  # the model has replied; the reply is not stored
    REPLY_WRITTEN = "reply_written"
    STARTED_WRITTEN = "started_written"
    TOOL_DONE = "tool_done"  # the tool has run; the result of the call is not stored
    RESULTS_WRITTEN = "results_written"
    JOINED = "joined"  # a waiting message is stored in the run; no request has used it
    BLOCKED = "blocked"  # a middleware has refused a call; the refusal is not stored
    SUMMARISED = "summarised"  # a summary is written; it is not stored
    COMPACTED = "compacted"  # the summary is stored; no request has used it
    MODEL_DOWN = "model_down"  # another model is about to continue; the change is not stored
    FELL_BACK = "fell_back"  # the change is stored; the other model has not been called


_hook: Callable[[CrashPoint], None] | None = None


def reached(point: CrashPoint) -> None:
    """Call the hook of `crash_at` with `point`. Without a hook, do nothing."""
    if _hook is not None:
        _hook(point)


def crash_at(hook: Callable[[CrashPoint], None] | None) -> None:
    """Set the function that is called at every later point; None removes it. For tests."""
    global _hook
    _hook = hook
