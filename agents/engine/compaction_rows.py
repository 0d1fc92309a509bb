"""Reading what is to be made shorter, and storing how, in one transaction each."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.attachments import attached_texts
from agents.engine.compaction_text import UserMessage
from agents.engine.epoch import begin_epoch, head_of, next_turn
from agents.engine.history import (
    Place,
    Said,
    latest_compaction,
    thread_history,
    thread_turns,
)
from agents.engine.journal import check_fence
from agents.engine.session import Session
from agents.events.append import append_events
from agents.events.catalogue.compaction import ContextCompacted
from agents.models import Compaction, CompactionAuthor, Message, MessageRole
from agents.providers.base import PromptHead, Role
from agents.services.todos import read_todos, todos_as_markdown

MESSAGES_SHOWN = 20
"""Of the messages between the first and the last so many are told, a line each."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the rows say. `end` is the place of the run's next reply."""

    previous: Compaction | None
    turns: list[Said]
    end: Place
    todos: str


def read_material(session: Session) -> Material:
    """The turns that the model is told now, whole. As many as fit into a window, or few more."""
    run = session.run
    previous = latest_compaction(run.thread_id)
    start = (previous.from_run, previous.from_turn) if previous else (0, 0)
    turns = list(thread_turns(run, start))
    todos = [draft for draft in read_todos(run.thread_id) if draft.status != "completed"]
    return Material(previous, turns, (run.number, next_turn(run)), todos_as_markdown(todos))


def read_messages(session: Session, before: Place) -> list[UserMessage]:
    """People's messages before a place: the first, and the last ones."""
    number, turn = before
    rows = Message.objects.filter(
        run__thread_id=session.run.thread_id,
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


def store_compaction(
    session: Session, row: Compaction, clipped: int
) -> tuple[PromptHead, list[tuple[Role, str]]]:
    """The row, its epoch and its event: all of it, or nothing. Raises `FenceLost`.

    Invariant 5: what the model is told changes with a new epoch only.
    """
    check_fence(session.writer)
    last = latest_compaction(row.thread_id)
    row.number = last.number + 1 if last else 1
    row.save(force_insert=True)
    epoch = begin_epoch(session.run, session.spec, session.parts, session.window)
    event = ContextCompacted(
        before=row.tokens_before,
        after=row.tokens_after,
        summary_ref=None if row.by == CompactionAuthor.CLIPPING else row.number,
        by=row.by,
        clipped=clipped,
    )
    append_events(session.writer.run_id, [event])
    return head_of(epoch), list(thread_history(session.run))
