"""Conversations with a key that the client of a chat has chosen."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence

from django.db.models import Count, Max, Q, QuerySet

from agents.events.read import StoredEvent, stored_events
from agents.models import Message, MessageRole, Run, RunEvent, Thread
from agents.selectors.visible import Person, threads_for
from agents.states import ACTIVE_RUNS, RunStatus

_DELTAS = ("text.delta", "reasoning.delta", "tool.input.delta")
"""Pieces of a part. The event that completes the part repeats the whole text."""
_STEP_BEGINS = ("step.started", "step.reset")

MAX_EVENTS = 10_000
"""The limit of one page of history: an event may have a few KB."""


def chat_thread(user: Person, agent: str, key: str) -> Thread | None:
    """The thread of `user` with the agent of the slug `agent` that has this key."""
    return threads_for(user).filter(key=key, agent__slug=agent).first()


def active_run(thread: Thread) -> Run | None:
    """Return the run that answers now. Runs that wait behind it have no events yet."""
    return Run.objects.filter(thread=thread, parent=None, status__in=ACTIVE_RUNS).first()


def newest_runs(thread: Thread, *, before: int | None, limit: int) -> list[Run]:
    """Up to `limit` runs that answer to messages, with a number below `before`, latest first."""
    runs = Run.objects.filter(thread=thread, parent=None)
    if before is not None:
        runs = runs.filter(number__lt=before)
    return list(runs.order_by("-number")[:limit])


def within_reason(runs: Sequence[Run]) -> list[Run]:
    """The first of `runs` whose outcomes have `MAX_EVENTS` together, and at least one."""
    rows = _outcome_rows([run.pk for run in runs])
    counts = dict(rows.values_list("run").annotate(Count("seq")).order_by())
    total, kept = 0, list[Run]()
    for run in runs:
        total += counts.get(run.pk, 0)
        if kept and total > MAX_EVENTS:
            break
        kept.append(run)
    return kept


def messages_of(runs: Sequence[Run]) -> dict[str, Message]:
    """The person's message of each run, by the run's id."""
    rows = Message.objects.filter(run__in=runs, role=MessageRole.USER, turn=0)
    return {message.run_id: message for message in rows}


def outcome_events(
    run_ids: Collection[str], *, upto: int | None = None
) -> dict[str, tuple[StoredEvent, ...]]:
    """The events of runs in order, without pieces of complete texts.

    `upto` is the last seq wanted.
    """
    rows = _outcome_rows(run_ids)
    if upto is not None:
        rows = rows.filter(seq__lte=upto)
    found = defaultdict(list)
    columns = ("run_id", "seq", "type", "data", "created_at")
    for run_id, *row in rows.order_by("run_id", "seq").values_list(*columns):
        found[run_id].append(tuple(row))
    return {run_id: stored_events(run_id, found[run_id]) for run_id in run_ids}


def _outcome_rows(run_ids: Collection[str]) -> QuerySet[RunEvent]:
    """Leave out the pieces of parts, but not in the last step of a run that ended too early.

    The parts of that step may be incomplete.
    """
    wanted = ~Q(type__in=_DELTAS)
    broken_off = RunEvent.objects.filter(
        run__in=run_ids,
        run__status__in=(RunStatus.FAILED, RunStatus.CANCELLED),
        type__in=_STEP_BEGINS,
    )
    for run_id, seq in broken_off.values_list("run").annotate(Max("seq")).order_by():
        wanted |= Q(run=run_id, seq__gt=seq)
    return RunEvent.objects.filter(wanted, run__in=run_ids)


def asked_at(run: Run, approval_ids: Collection[str]) -> int:
    """Return the seq of the event that parked `run` for these requests, 0 if there is none.

    If the requests have been replaced since, it is the last event that parked the run for approval.
    """
    parked = RunEvent.objects.filter(run=run, type="run.suspended").order_by("seq")
    last = fitting = 0
    for seq, text in parked.values_list("seq", "data"):
        data = json.loads(text)
        if data["reason"] == "approval":
            last = seq
            if not set(approval_ids).isdisjoint(data["approval_ids"]):
                fitting = seq
    return fitting or last
