"""Rows of the event log for tests of readers, which must cope with all stored data.

The values may be anything, and fields may be missing, as in the log of another release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from django.utils import timezone

from agents.events.append import _take_seqs, dump, notify_watchers
from agents.events.registry import event_types
from agents.models import RunEvent

RawEvent = tuple[str, dict[str, Any]]
"""The type and the data."""


def append_raw(run_id: str, events: Sequence[RawEvent], *, is_declared: bool = True) -> int:
    """Append rows as `append_events` does, and return the last seq.

    A type or a field without a declaration is a mistake in the test, unless `is_declared` is false.
    """
    if is_declared:
        for kind, data in events:
            _check_names(kind, data)
    last = _take_seqs(run_id, len(events))
    now = timezone.now()
    RunEvent.objects.bulk_create(
        RunEvent(run_id=run_id, seq=seq, type=kind, data=dump(data), created_at=now)
        for seq, (kind, data) in enumerate(events, start=last - len(events) + 1)
    )
    notify_watchers(run_id)
    return last


def _check_names(kind: str, data: dict[str, Any]) -> None:
    known = {field.name for field in fields(event_types()[kind])}  # type: ignore[arg-type]
    if unknown := data.keys() - known:
        raise ValueError(f"{kind} has no {', '.join(sorted(unknown))}; it has {sorted(known)}.")
