"""The other messages of a conversation, for the page of one of its runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Substr

from agents.events.read import ROWS_AT_ONCE
from agents.hidden_text import cut_text
from agents.models import NEVER_STARTED, Message, MessageRole, Run, Upload
from agents.models.message import PERSON
from agents.review.json_text import text_of
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
MARKDOWN_CHARACTERS = 200_000
"""Limit of the newest answers of a page that are Markdown: 8,000 characters can take 0.1 s."""


@dataclass(frozen=True, slots=True)
class EarlierMessage:
    """An earlier run: its message and the last answer of the agent, which can be ""."""

    run: Run
    message: str
    answer: str
    tree: list[Any] | None
    """The answer as Markdown: see `agents.web.markdown`. None: shown as plain text."""
    value: str
    """The answer as data, as JSON, or "" without one."""
    is_cut: bool
    seconds: int | None
    uploads: list[Upload] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    """Messages that joined the run while the agent worked."""


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
    # A value may have a megabyte: keep only the start.
    start = Substr("structured_output", 1, ANSWER_CHARACTERS + 1, output_field=TextField())
    rows = before.select_related("agent_version", "clock").annotate(value_start=start)
    rows = rows.defer("attachments", "structured_output")
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
    return runs.exclude(NEVER_STARTED)


def _with_texts(person: Person, runs: Sequence[Run]) -> list[EarlierMessage]:
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
    uploads: dict[str | None, list[Upload]] = {}
    if any(run.has_uploads for run in runs):
        for upload in Upload.objects.filter(run__in=ids):
            uploads.setdefault(upload.run_id, []).append(upload)
    found = []
    left = MARKDOWN_CHARACTERS
    for run in reversed(runs):
        answer = answered.get(run.pk, "")
        left -= len(answer)
        files = OwnFiles(run) if run.pk in readable else None
        message = _earlier_message(run, asked.get(run.pk, ""), answer, files, left >= 0)
        found.append(
            replace(message, uploads=uploads.get(run.pk, []), joined=joined.get(run.pk, []))
        )
    return found[::-1]


def _texts(which: Q, characters: int) -> dict[str, str]:
    """Return the start of one text of each run, one character longer if it must be cut."""
    # A message may have a megabyte: keep only the start.
    rows = Message.objects.filter(which).iterator(chunk_size=ROWS_AT_ONCE)
    return {row.run_id: row.text[: characters + 1] for row in rows}


def _earlier_message(
    run: Run, message: str, answer: str, files: OwnFiles | None, as_markdown: bool
) -> EarlierMessage:
    shown = cut_text(answer, ANSWER_CHARACTERS)
    value: str = run.value_start or ""  # type: ignore[attr-defined]  # from the query
    link, picture = (files.download, files.picture) if files else (_nothing, _nothing)
    seconds = None
    if run.started_at and run.ended_at:
        seconds = max(0, round((run.ended_at - run.started_at).total_seconds()))
    return EarlierMessage(
        run=run,
        message=cut_text(message, MESSAGE_CHARACTERS),
        answer=shown,
        tree=markdown_tree(shown, link, picture) if shown and as_markdown else None,
        value=_readable(value),
        is_cut=len(message) > MESSAGE_CHARACTERS
        or max(len(answer), len(value)) > ANSWER_CHARACTERS,
        seconds=seconds,
    )


def _readable(value: str) -> str:
    """Return a JSON text with line breaks. If it is too long or too deep, it stays as it is."""
    if not value or len(value) > ANSWER_CHARACTERS:
        return cut_text(value, ANSWER_CHARACTERS)
    try:
        return text_of(json.loads(value), 2 * ANSWER_CHARACTERS)
    except RecursionError:
        return value


def _nothing(named: str) -> None:
    """Return None. Used for people who can watch the run but not read its files."""
