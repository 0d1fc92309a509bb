"""Find conversations, and mark them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from agents.features.conversations.models import ConversationMark
from agents.models import Run, Thread
from agents.selectors.attention import own_runs
from agents.selectors.excerpts import Part, excerpts_of
from agents.selectors.history import HistoryFilter, history_page
from agents.selectors.visible import Person

SHOWN = 40
"""Conversations of one list, without pinned ones."""
LOOKED_THROUGH = 400
"""The newest runs of a person in which conversations are looked for."""
MOST_PINNED = 50


@dataclass(frozen=True, slots=True)
class Conversation:
    """A thread with its latest run among those that were examined."""

    thread: Thread
    run: Run
    is_pinned: bool
    is_archived: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Two lists of conversations. `is_cut`: there may be older ones.

    `pinned` starts with the one that was pinned last, and is empty in a search and among the
    archived. `others` starts with the one with the latest run. `excerpts` of a search are by the
    ids of runs.
    """

    pinned: list[Conversation]
    others: list[Conversation]
    is_cut: bool
    excerpts: dict[str, list[Part]]


def conversations_of(person: Person, words: str = "", *, archived: bool = False) -> Found:
    """Return the conversations that `person` started.

    Args:
        words: Only conversations with this text in a message or the title; "" for all.
        archived: Return the archived ones instead of the others.
    """
    runs, is_cut = _newest_runs(person, words)
    marks = _marks({run.thread_id for run in runs})
    latest: dict[str, Conversation] = {}
    for run in runs:
        mark = marks.get(run.thread_id)
        if run.thread_id not in latest and bool(mark and mark.archived_at) == archived:
            latest[run.thread_id] = _conversation(run, mark)
    pinned = [] if words or archived else _pinned(person)
    known = {conversation.thread.pk for conversation in pinned}
    others = [found for thread, found in latest.items() if thread not in known]
    shown = others[:SHOWN]
    excerpts = excerpts_of([found.run.pk for found in shown], words)
    return Found(pinned, shown, is_cut or len(others) > SHOWN, excerpts)


def mark(
    thread: Thread, *, pinned: bool | None = None, archived: bool | None = None
) -> ConversationMark:
    """Set marks of a thread. None keeps a mark.

    An archived thread is not pinned: archiving removes the pin. Pinning an archived thread restores
    it, unless `archived` is true.
    """
    now = timezone.now()
    with transaction.atomic():
        found, _ = ConversationMark.objects.select_for_update(no_key=True).get_or_create(
            thread=thread
        )
        if pinned is not None:
            found.pinned_at = found.pinned_at or now if pinned else None
        if archived is not None:
            found.archived_at = found.archived_at or now if archived else None
        if pinned and archived is None:
            found.archived_at = None
        if found.archived_at is not None:
            found.pinned_at = None
        found.save()
    return found


def _newest_runs(person: Person, words: str) -> tuple[list[Run], bool]:
    if words:
        page = history_page(person, HistoryFilter(words=words))
        return page.runs, bool(page.next_after)
    runs = list(own_runs(person)[: LOOKED_THROUGH + 1])
    return runs[:LOOKED_THROUGH], len(runs) > LOOKED_THROUGH


def _pinned(person: Person) -> list[Conversation]:
    rows = ConversationMark.objects.filter(thread__owner=person.pk, pinned_at__isnull=False)
    pinned = {row.thread_id: row for row in rows.order_by("-pinned_at")[:MOST_PINNED]}
    if not pinned:
        return []
    # Ids start with the time, so the greatest one is that of the latest run.
    in_threads = own_runs(person).order_by().filter(thread__in=pinned).values("thread")
    latest = in_threads.annotate(latest=Max("pk")).values("latest")
    runs = {run.thread_id: run for run in own_runs(person).filter(pk__in=latest)}
    return [_conversation(runs[thread], row) for thread, row in pinned.items() if thread in runs]


def _conversation(run: Run, row: ConversationMark | None) -> Conversation:
    is_pinned, is_archived = bool(row and row.pinned_at), bool(row and row.archived_at)
    return Conversation(run.thread, run, is_pinned, is_archived)


def _marks(threads: Iterable[str]) -> dict[str, ConversationMark]:
    return ConversationMark.objects.in_bulk(list(threads))
