"""Named points of a driver at which a test can kill its process."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class CrashPoint(StrEnum):
    CLAIMED = "claimed"
    REPLIED = "replied"  # the model has replied; the reply is not stored
    REPLY_WRITTEN = "reply_written"
    STARTED_WRITTEN = "started_written"
    TOOL_DONE = "tool_done"  # the tool has run; its result is not stored
    RESULTS_WRITTEN = "results_written"
    BLOCKED = "blocked"  # a middleware has refused a call; that is not stored
    SUMMARISED = "summarised"  # a summary is written, but not stored
    COMPACTED = "compacted"  # it is stored, but not used in a request
    MODEL_DOWN = "model_down"  # another model is about to continue; this is not stored
    FELL_BACK = "fell_back"  # it is stored, but the other model has not been called


_hook: Callable[[CrashPoint], None] | None = None


def reached(point: CrashPoint) -> None:
    """Report that a driver is at `point`. Does nothing outside of tests."""
    if _hook is not None:
        _hook(point)


def crash_at(hook: Callable[[CrashPoint], None] | None) -> None:
    """Call `hook` at every later point; None removes it. For tests."""
    global _hook
    _hook = hook
