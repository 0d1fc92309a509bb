"""Append to a run's event log, for all code except the run's driver.

The driver's own appends are in `agents.engine.storage.journal`, where they check its fence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection, transaction
from django.utils import timezone

from agents.events.event import Event
from agents.events.registry import check_declared
from agents.kernel.lazy_modules import lazy_modules
from agents.models import RunClock, RunEvent
from agents.settings import EventSettings

with lazy_modules:
    # Importing pydantic takes 0.2 s, and only tests and development check values.
    from agents.events import event_schema


EventDraft = Event
"""An event before it has a seq."""

PREVIEW_BYTES = 4096
"""Results and inputs in events are cut to about this size; the journal has all of them."""


def dump(data: object) -> str:
    """Return the JSON format of this project: compact, UTF-8 kept, key order kept.

    Lone surrogates, which databases refuse, become escapes. Raises `ValueError` for NaN and
    infinity.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # NUL is already an escape in JSON, but a lone surrogate is not.
    return text.encode("utf-8", "backslashreplace").decode("utf-8") if not _encodes(text) else text


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def encode(draft: EventDraft) -> tuple[str, str]:
    """Return the type and the JSON text of the data. Raises `InvalidEvent`."""
    check_declared(draft)
    text = dump(draft.data())
    if EventSettings.now().CHECK_EVENTS:
        event_schema.check_data(type(draft), text)
    return draft.type, text


def append_events(run_id: str, drafts: Sequence[EventDraft]) -> int:
    """Write `drafts` in their order and return the last seq, or 0 without drafts.

    Raises `TransactionManagementError` outside of a transaction.

    The clock row stays locked until the transaction ends, so that events of one run commit in the
    order of their seq.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "append_events belongs to a change of state: call it in the same transaction."
        )
    if not drafts:
        return 0
    last = _take_seqs(run_id, len(drafts))
    now = timezone.now()
    RunEvent.objects.bulk_create(
        RunEvent(
            run_id=run_id,
            seq=last - len(drafts) + number,
            type=kind,
            data=data,
            created_at=now,
        )
        for number, (kind, data) in enumerate(map(encode, drafts), start=1)
    )
    notify_watchers(run_id)
    return last


def _take_seqs(run_id: str, count: int) -> int:
    """Reserve `count` seqs for the caller, and return the last one."""
    table = RunClock._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{table}" SET seq = seq + %s WHERE run_id = %s RETURNING seq',  # noqa: S608
            [count, run_id],
        )
        row = cursor.fetchone()
    if row is None:
        raise RunClock.DoesNotExist(f"Run {run_id} has no clock.")
    return int(row[0])


CHANNEL = "vel_events"
"""The PostgreSQL notification channel; its payload is a run's id."""


def notify_watchers(run_id: str) -> None:
    """Notify PostgreSQL's listeners, on commit, that `run_id` has new events.

    SQLite has no notifications: its watchers see the change of the file's data version.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, run_id])
