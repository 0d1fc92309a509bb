"""A driver's data of the journal."""

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
    """The outcome of a call. `result` is JSON text; `commit` writes rows in its transaction."""

    call: Call
    status: str
    result: str
    is_error: bool = False
    code: str = ""
    events: list[EventDraft] = field(default_factory=list)
    commit: Callable[[], None] | None = None
    commits: Sequence[Commit] = ()
    """The writes of middleware in the same transaction."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that continues when runs have ended, or at `until` (seconds since 1970)."""

    run_ids: Sequence[str]
    until: float | None


@dataclass(frozen=True, slots=True)
class Totals:
    """The additions of one model call to the run's totals. `cost` in millionths of a dollar."""

    usage: Usage
    cost: int | None
    active_ms: int
