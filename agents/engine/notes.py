"""What the engine itself tells the model in the middle of a run.

A note is a row of its own, a user message of the turn that it follows: the history of the next
driver has it in the same place, byte for byte, and the prompt's beginning stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from agents.engine.journal import MESSAGE_COLUMNS, write_events
from agents.engine.journal_rows import Writer
from agents.engine.sql import MESSAGE, insert_rows, timestamp
from agents.events.append import EventDraft, dump
from agents.models import Message, MessageRole, Run, RunClock

FROM = "[From the program that runs you, not from the user.]"


def note_json(text: str) -> str:
    """The note as the model reads it: a JSON array of one text block."""
    return dump([{"type": "text", "text": f"{FROM} {text}"}])


def insert_note(writer: Writer, turn: int, content: str) -> None:
    """Store what `note_json` made. In a transaction that has checked the fence.

    A turn has one note at most.
    """
    row = (writer.run_id, turn, MessageRole.USER.value, content, "", "", 0, 0, 0, 0, timestamp())
    insert_rows(MESSAGE, MESSAGE_COLUMNS, [row])


def write_note(writer: Writer, turn: int, content: str, drafts: Sequence[EventDraft]) -> None:
    """A note that goes with no reply."""
    write_events(writer, drafts)
    insert_note(writer, turn, content)


def add_note(run: Run, writer: Writer, text: str) -> None:
    """Tell the model something before its next turn, whatever stands there already.

    In a transaction that has checked the fence, before the driver has read the history.
    """
    turn = RunClock.objects.values_list("turn", flat=True).get(run_id=writer.run_id)
    if turn == 0:
        run.opening_note = "\n".join(part for part in (run.opening_note, f"{FROM} {text}") if part)
        Run.objects.filter(pk=run.pk).update(opening_note=run.opening_note)
        return
    mine = {"run_id": writer.run_id, "turn": turn, "role": MessageRole.USER}
    earlier = Message.objects.filter(**mine).first()
    if earlier is None:
        insert_note(writer, turn, note_json(text))
        return
    blocks = [*earlier.blocks, *json.loads(note_json(text))]
    Message.objects.filter(pk=earlier.pk).update(content=dump(blocks))
