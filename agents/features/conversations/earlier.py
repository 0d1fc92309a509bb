"""The other messages of a conversation, for the page of one of its runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from agents.events.read import ROWS_AT_ONCE
from agents.hidden_text import cut_text
from agents.models import JOINED, Message, MessageRole, Run
from agents.models.message import PERSON
from agents.selectors.visible import Person, runs_for, watchable_runs_for
from agents.web.markdown import markdown_tree
from agents.web.said import OwnFiles

SHOWN = 20
"""Earlier messages of a page, and how many each *Show earlier messages* adds."""
MOST_SHOWN = 100
"""From this number on, the link leads to the page of the oldest message."""
MESSAGE_CHARACTERS = 2_000
ANSWER_CHARACTERS = 8_000
"""Longer texts are cut."""


@dataclass(frozen=True, slots=True)
class EarlierMessage:
    """An earlier run: its message and the last answer of the agent, which can be ""."""

    run: Run
    message: str
    joined: list[str]
    """Messages that joined the run while the agent worked."""
    answer: str
    tree: list[Any] | None
    """The answer as Markdown: see `agents.web.markdown`. None: shown as plain text."""
    is_cut: bool
    seconds: int | None


@dataclass(frozen=True, slots=True)
class Earlier:
    """Earlier messages, oldest first.

    `next_count` is the number that the link shows, or 0 if it leads to the page of the oldest run.
    """

    messages: list[EarlierMessage] = field(default_factory=list)
    has_more: bool = False
    next_count: int = 0
    forked_from: Run | None = None


def earlier_messages(person: Person, run: Run, asked: str) -> Earlier:
    """Return the messages before `run` in its conversation that `person` can watch.

    Takes the same number of queries for any number of messages.

    Args:
        asked: The number of messages in the address, as a person wrote it.
    """
    if run.parent_id is not None:
        return Earlier()
    count = min(int(asked), MOST_SHOWN) if asked.isdecimal() and len(asked) < 6 else 0
    count = max(count, SHOWN)
    before = _of_conversation(person, run).filter(number__lt=run.number)
    rows = before.select_related("agent_version", "clock").defer("attachments", "structured_output")
    found = list(rows.order_by("-number")[: count + 1])
    has_more = len(found) > count
    origin = None
    if not has_more and (forked_from := run.thread.forked_from_id):
        origin = watchable_runs_for(person).filter(pk=forked_from, parent=None).first()
    more = count + SHOWN if has_more and count < MOST_SHOWN else 0
    return Earlier(_with_texts(person, found[:count][::-1]), has_more, more, origin)


def later_runs(person: Person, run: Run) -> list[Run]:
    """Return the next run of the conversation and the newest one, if they exist."""
    if run.parent_id is not None:
        return []
    later = _of_conversation(person, run).filter(number__gt=run.number)
    following = later.order_by("number").first()
    newest = later.order_by("-number").first()
    if following is None or newest is None:
        return []
    return [following] if following == newest else [following, newest]


def _of_conversation(person: Person, run: Run) -> QuerySet[Run]:
    runs = watchable_runs_for(person).filter(thread=run.thread_id, parent=None)
    return runs.exclude(JOINED)


def _with_texts(person: Person, runs: list[Run]) -> list[EarlierMessage]:
    if not runs:
        return []
    ids = [run.pk for run in runs]
    replies = Message.objects.filter(role=MessageRole.ASSISTANT, turn__gt=0, position=0)
    last = replies.filter(run=OuterRef("run")).order_by("-turn").values("turn")[:1]
    asked = _texts(Q(run__in=ids, turn=0, position=0), MESSAGE_CHARACTERS)
    answered = _texts(
        Q(run__in=ids, role=MessageRole.ASSISTANT, position=0, turn=Subquery(last)),
        ANSWER_CHARACTERS,
    )
    joined: dict[str, list[str]] = {}
    rows = Message.objects.filter(run__in=ids, author=PERSON, position__gt=0)
    for row in rows.order_by("turn", "position")[:MOST_SHOWN]:
        joined.setdefault(row.run_id, []).append(cut_text(row.text, MESSAGE_CHARACTERS))
    readable = set(runs_for(person).filter(pk__in=ids).values_list("pk", flat=True))
    return [
        replace(
            _earlier_message(
                run, asked.get(run.pk, ""), answered.get(run.pk, ""), run.pk in readable
            ),
            joined=joined.get(run.pk, []),
        )
        for run in runs
    ]


def _texts(which: Q, characters: int) -> dict[str, str]:
    """Return the start of one text of each run, one character longer if it must be cut."""
    # A message may have a megabyte: keep only the start.
    rows = Message.objects.filter(which).iterator(chunk_size=ROWS_AT_ONCE)
    return {row.run_id: row.text[: characters + 1] for row in rows}


def _earlier_message(run: Run, message: str, answer: str, may_read: bool) -> EarlierMessage:
    shown = cut_text(answer, ANSWER_CHARACTERS)
    files = OwnFiles(run)
    link, picture = (files.download, files.picture) if may_read else (_nothing, _nothing)
    seconds = None
    if run.started_at and run.ended_at:
        seconds = max(0, round((run.ended_at - run.started_at).total_seconds()))
    return EarlierMessage(
        run=run,
        message=cut_text(message, MESSAGE_CHARACTERS),
        joined=[],
        answer=shown,
        tree=markdown_tree(shown, link, picture) if shown else None,
        is_cut=len(message) > MESSAGE_CHARACTERS or len(answer) > ANSWER_CHARACTERS,
        seconds=seconds,
    )


def _nothing(named: str) -> None:
    """Return None. Used for people who can watch the run but not read its files."""
