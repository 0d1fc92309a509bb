"""Read the event log: stored rows, and their formats for clients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agents.events.stored import StoredEvent
from agents.models import RunEvent

MAX_SEQ = 2**63 - 1
READ_BYTES = 2_000_000
"""Limit of events that are read together. A single event may be larger."""
ROWS_AT_ONCE = 4
"""Rows that are fetched together if each may have megabytes."""
EVENTS_AT_ONCE = 10
"""The same for events, of which most are short."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some events after a seq, oldest first.

    `more`: the page was full. `ended`: the run had ended before the rows were read, so a page
    without `more` is the last one.
    """

    events: tuple[StoredEvent, ...]
    more: bool
    ended: bool


class RunNotFound(LookupError):
    """The run does not exist, or it has been deleted."""


def timestamp(moment: datetime | str) -> str:
    """Return a row's time for events. SQLite's drivers give text without a zone, in UTC."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds") + "Z"


def stored_events(
    run_id: str, rows: Iterable[tuple[int, str, str, datetime | str]]
) -> tuple[StoredEvent, ...]:
    """Return events of one run from rows of (seq, type, data, created_at)."""
    return tuple(
        StoredEvent(run_id, seq, kind, timestamp(created_at), data)
        for seq, kind, data, created_at in rows
    )


def read_events(run_id: str, *, after: int = 0, limit: int = 500) -> list[dict[str, Any]]:
    """Return up to `limit` events with a seq above `after`, oldest first: `seq, type, ts, data`.

    Fewer if they are long: the list ends with the event that reaches `READ_BYTES`. An unknown run
    has no events. Raises `ValueError` for an invalid `after`, and for a `limit` below 1.
    """
    check_position(after)
    if limit < 1:
        raise ValueError(f"limit is {limit}: ask for at least one event.")
    rows = (
        RunEvent.objects.filter(run_id=run_id, seq__gt=after)
        .order_by("seq")
        .values_list("seq", "type", "data", "created_at")[:limit]
    )
    found, size = [], 0
    for row in rows.iterator(chunk_size=EVENTS_AT_ONCE):
        found.append(row)
        size += len(row[2])
        if size >= READ_BYTES:
            break
    return [event.without_run() for event in stored_events(run_id, found)]


def check_position(after: int) -> None:
    """Raise `ValueError` for a seq that is not valid in the database."""
    if not 0 <= after <= MAX_SEQ:
        raise ValueError(f"after is {after}: give the last seq you have, 0 for the beginning.")
