"""The conversation of a forked thread: closed copies of another thread's rows.

Each run is copied with its number, so that positions in the conversation are the same in both. A
copy is never executed, listed or charged: its messages have no tokens and no cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection, models
from django.db.models import Q
from django.utils import timezone

from agents.events.append import dump
from agents.ids import new_id
from agents.kernel import row_hooks
from agents.models import (
    Compaction,
    Message,
    MessageImage,
    Run,
    RunClock,
    Thread,
    ToolCall,
    Upload,
)
from agents.services.files.upload_contents import copy_contents
from agents.settings import MachineSettings
from agents.states import OPEN_CALLS, RunStatus, ToolCallStatus

FORKED = "forked"
"""`Run.finish_reason` of a copy, and `ToolCall.code` of a call that was open."""
NOT_RUN = "Not run: the conversation was forked while this call was open."
OUTCOME_UNKNOWN = (
    "Forked while this call ran in the original conversation: its outcome is unknown here. Check "
    "before you repeat it."
)
_UNPAID = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "cost_microusd": 0,
}


def copy_history(source: Run, turn: int, thread: Thread, *, uploads: bool) -> None:
    """Copy the conversation up to a turn of `source` to the empty `thread`.

    In the transaction of the fork. Open calls are answered with `NOT_RUN`. With `uploads` the
    thread has people's files too; its next message names those that the copied messages do not
    name.
    """
    copies: dict[str, Run] = {}
    earlier = Run.objects.filter(thread=source.thread_id, number__lte=source.number)
    for run in earlier.exclude(message_refused=True).order_by("number"):
        copies[run.pk] = _copy_run(run, thread, turn if run.pk == source.pk else None)
    _copy_compactions(source, turn, thread, copies)
    row_hooks.forked(source, turn, thread)
    if uploads:
        _copy_uploads(source, thread, copies)


def _copy_run(run: Run, thread: Thread, turn: int | None) -> Run:
    now = timezone.now()
    copy = Run.objects.create(
        thread=thread,
        number=run.number,
        agent_version_id=run.agent_version_id,
        owner_id=thread.owner_id,
        status=RunStatus.COMPLETED if run.status == RunStatus.COMPLETED else RunStatus.CANCELLED,
        # The memory checks who has written the messages, also after the original was erased.
        source=run.source,
        is_copy=True,
        has_begun=run.has_begun,
        opening_note=run.opening_note,
        attachments=_copy_images(run, thread),
        finish_reason=FORKED,
        started_at=run.started_at,
        # Not the original time: the age of a thread is that of its last run.
        ended_at=now,
    )
    RunClock.objects.create(run=copy)
    _copy_rows(Message, run, copy, turn, _UNPAID)
    _copy_rows(ToolCall, run, copy, turn, {"grant_id": None})
    _close(copy)
    row_hooks.copied(run, copy)
    return copy


def _copy_images(run: Run, thread: Thread) -> str:
    """Copy the message's attachments, with new rows for the images."""
    attachments = run.attachments
    if attachments:
        for image in MessageImage.objects.filter(thread=run.thread_id):
            if image.pk in attachments:
                old, image.pk = image.pk, new_id()
                image.thread = thread
                image.save(force_insert=True)
                attachments = attachments.replace(old, image.pk)
    return attachments


def _copy_uploads(source: Run, thread: Thread, copies: Mapping[str, Run]) -> None:
    rows = list(Upload.objects.filter(thread=source.thread_id).order_by("pk"))
    contents: dict[str, str] = {}
    for row, key in zip(rows, sorted(new_id() for _ in rows), strict=True):
        contents[key] = row.pk
        row.pk, row.thread = key, thread
        row.run = copies.get(row.run_id or "")
    Upload.objects.bulk_create(rows)
    if MachineSettings.now().pins_threads:
        copy_contents(contents)


def _copy_rows(
    model: type[models.Model], run: Run, copy: Run, turn: int | None, changed: Mapping[str, Any]
) -> None:
    """Copy rows in one SQL statement: long messages need not pass through this process."""
    replaced = {"run_id": copy.pk, **changed}
    names = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{name}"' for name in names)
    values = ", ".join("%s" if name in replaced else f'"{name}"' for name in names)
    table = model._meta.db_table
    until = "" if turn is None else " AND turn <= %s"
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" ({columns}) SELECT {values} FROM "{table}"'  # noqa: S608
            f" WHERE run_id = %s{until} ORDER BY id",
            [
                *(replaced[name] for name in names if name in replaced),
                run.pk,
                *([] if turn is None else [turn]),
            ],
        )


def _close(copy: Run) -> None:
    """Answer the open calls. A call that had started may have been carried out."""
    calls = ToolCall.objects.filter(run=copy)
    begun = calls.filter(status=ToolCallStatus.STARTED)
    closed = {
        "status": ToolCallStatus.CANCELLED,
        "is_error": True,
        "code": FORKED,
        "finished_at": timezone.now(),
    }
    begun.update(result=dump(OUTCOME_UNKNOWN), **closed)
    calls.filter(status__in=OPEN_CALLS).update(result=dump(NOT_RUN), **closed)


def _copy_compactions(source: Run, turn: int, thread: Thread, copies: Mapping[str, Run]) -> None:
    """Copy the compactions: without them the conversation may exceed the context window."""
    until = Q(until_run__lt=source.number) | Q(until_run=source.number, until_turn__lte=turn)
    for row in Compaction.objects.filter(until, thread=source.thread_id).order_by("number"):
        row.pk = None
        row._state.adding = True
        row.thread = thread
        row.run = copies[row.run_id]
        row.save(force_insert=True)
