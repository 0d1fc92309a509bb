"""Reading the rows of a conversation that is made shorter."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.files.attachments import attached_texts
from agents.engine.prompt.epoch import next_turn
from agents.engine.prompt.history import (
    Place,
    Said,
    latest_compaction,
    thread_turns,
)
from agents.features.compaction.opening import UserMessage
from agents.models import Compaction, Message, MessageRole, Run
from agents.services.runs.todos import read_todos, todos_as_markdown

MESSAGES_SHOWN = 20
"""The messages after the first that the model reads: the last ones."""


@dataclass(frozen=True, slots=True)
class Material:
    """The conversation in its rows."""

    previous: Compaction | None
    """The thread's last compaction."""
    turns: list[Said]
    """The turns that are not left out, with uncut texts."""
    end: Place
    """The place of the run's next reply."""
    todos: str
    """The open to-dos, as Markdown."""


def read_material(run: Run) -> Material:
    """Read the turns that the model gets now. They fit into the window, or nearly."""
    previous = latest_compaction(run.thread_id)
    start = (previous.from_run, previous.from_turn) if previous else (0, 0)
    turns = list(thread_turns(run, start))
    todos = [draft for draft in read_todos(run.thread_id) if draft.status != "completed"]
    return Material(previous, turns, (run.number, next_turn(run)), todos_as_markdown(todos))


def read_messages(run: Run, before: Place) -> list[UserMessage]:
    """Read people's messages before a place: the first, and the last ones."""
    number, turn = before
    rows = Message.objects.filter(
        run__thread_id=run.thread_id,
        run__number__lt=number + (turn > 0),
        role=MessageRole.USER,
        turn=0,
    )
    rows = rows.exclude(run__message_refused=True).order_by("run__number")
    numbers = list(rows.values_list("run__number", flat=True))
    shown = [*numbers[:1], *numbers[1:][-MESSAGES_SHOWN:]]
    return [
        UserMessage(row.run.number, "\n\n".join([row.text, *attached_texts(row.run)]))
        for row in rows.filter(run__number__in=shown).select_related("run")
    ]


def store_compaction(row: Compaction) -> None:
    """Store a compaction, in the transaction that starts an epoch.

    Invariant 5: the prompt changes only with a new epoch.
    """
    row.save(force_insert=True)
