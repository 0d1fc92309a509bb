"""What a driver holds of the journal, and its right to write to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agents.events.append import EventDraft
from agents.kernel.lease import Writer as Writer
from agents.kernel.middleware import Commit
from agents.kernel.tool_calls import Call as Call
from agents.providers.base import Usage


@dataclass(slots=True)
class Outcome:
    """How a call ended. `result` is JSON text; `commit` writes rows in the same transaction."""

    call: Call
    status: str
    result: str
    is_error: bool = False
    code: str = ""
    events: list[EventDraft] = field(default_factory=list)
    commit: Callable[[], None] | None = None
    commits: Sequence[Commit] = ()
    """What middleware writes with it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that continues when runs have ended, or at `until` (seconds since 1970)."""

    run_ids: Sequence[str]
    until: float | None


@dataclass(frozen=True, slots=True)
class Totals:
    """What one model call adds to the run's totals. `cost` in millionths of a dollar."""

    usage: Usage
    cost: int | None
    active_ms: int
