"""What the engine itself tells the model in the middle of a run.

A note is a row of its own, a user message of the turn that it follows: the history of the next
driver has it in the same place, byte for byte, and the prompt's beginning stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from agents.engine.storage.journal import write_events
from agents.engine.storage.journal_rows import Writer
from agents.engine.storage.sql import MESSAGE, timestamp
from agents.events.append import EventDraft, dump
from agents.models import MessageRole, Run, RunClock

FROM = "[From the program that runs you, not from the user.]"


def note_json(text: str) -> str:
    """The note as the model reads it: a JSON array of one text block."""
    return dump([{"type": "text", "text": f"{FROM} {text}"}])


_INSERT = (
    f'INSERT INTO "{MESSAGE}" (run_id, turn, position, author, role, content, stop_reason, model,'
    " input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, created_at) VALUES"
    f' (%s, %s, (SELECT COALESCE(MAX(position), 0) + 1 FROM "{MESSAGE}"'
    " WHERE run_id = %s AND turn = %s), %s, %s, %s, '', '', 0, 0, 0, 0, %s)"
)


def insert_note(writer: Writer, turn: int, content: str, author: str) -> None:
    """Store what `note_json` made, after the other notes of the turn.

    In a transaction that has checked the fence. `author` names the feature whose note it is.
    """
    run_id, role = writer.run_id, MessageRole.USER.value
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [run_id, turn, run_id, turn, author, role, content, timestamp()])


def write_note(
    writer: Writer, turn: int, content: str, drafts: Sequence[EventDraft], author: str
) -> None:
    """A note that goes with no reply."""
    write_events(writer, drafts)
    insert_note(writer, turn, content, author)


def add_note(run: Run, writer: Writer, text: str, author: str) -> None:
    """Tell the model something before its next turn, after what stands there already.

    In a transaction that has checked the fence, before the driver has read the history.
    """
    turn = RunClock.objects.values_list("turn", flat=True).get(run_id=writer.run_id)
    if turn == 0:
        run.opening_note = "\n".join(part for part in (run.opening_note, f"{FROM} {text}") if part)
        Run.objects.filter(pk=run.pk).update(opening_note=run.opening_note)
        return
    insert_note(writer, turn, note_json(text), author)
