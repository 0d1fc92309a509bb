"""Notes of the engine for the model in the middle of a run.

A note is stored as a user message after the turn that it follows. Therefore, the history of the
next driver has the same bytes in the same place, and the start of the prompt does not change.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from agents.engine.storage.journal import Writer, write_events
from agents.engine.storage.sql import MESSAGE, timestamp
from agents.events.append import EventDraft, dump
from agents.models import MessageRole, Run, RunClock

FROM = "[From the program that runs you, not from the user.]"


def note_json(text: str) -> str:
    """Return a note for the model as JSON: an array of one text block."""
    return dump([{"type": "text", "text": f"{FROM} {text}"}])


_INSERT = (
    f'INSERT INTO "{MESSAGE}" (run_id, turn, position, author, role, content, stop_reason, model,'
    " input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, created_at) VALUES"
    f' (%s, %s, (SELECT COALESCE(MAX(position), 0) + 1 FROM "{MESSAGE}"'
    " WHERE run_id = %s AND turn = %s), %s, %s, %s, '', '', 0, 0, 0, 0, %s)"
)


def insert_note(writer: Writer, turn: int, content: str, author: str) -> None:
    """Store a note after the other notes of the turn.

    `content` is a result of `note_json`, and `author` the name of the feature. Call this in a
    transaction that has checked the fencing token.
    """
    run_id, role = writer.run_id, MessageRole.USER.value
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [run_id, turn, run_id, turn, author, role, content, timestamp()])


def write_note(
    writer: Writer, turn: int, content: str, drafts: Sequence[EventDraft], author: str
) -> None:
    """Store a note that belongs to no reply, and events."""
    write_events(writer, drafts)
    insert_note(writer, turn, content, author)


def add_note(run: Run, writer: Writer, text: str, author: str) -> None:
    """Add a note for the model before its next turn, after all earlier messages.

    Call this in a transaction that has checked the fencing token, before the driver has loaded the
    history.
    """
    turn = RunClock.objects.values_list("turn", flat=True).get(run_id=writer.run_id)
    if turn == 0:
        run.opening_note = "\n".join(part for part in (run.opening_note, f"{FROM} {text}") if part)
        Run.objects.filter(pk=run.pk).update(opening_note=run.opening_note)
        return
    insert_note(writer, turn, note_json(text), author)
