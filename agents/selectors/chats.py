"""Queries for conversations with a key from a chat client."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import Length

from agents.events.catalogue.messages import ReasoningDelta, StepReset, StepStarted, TextDelta
from agents.events.catalogue.runs import RunSuspended
from agents.events.catalogue.tool_calls import ToolInputDelta
from agents.events.projections.ui_message import Chunk
from agents.events.projections.ui_stream import UiStream
from agents.events.read import EVENTS_AT_ONCE, stored_events
from agents.events.stored import StoredEvent
from agents.models import NEVER_STARTED, Agent, Message, MessageRole, Run, RunEvent, Thread
from agents.selectors.visible import Person, agent_named, threads_for
from agents.states import ACTIVE_RUNS, RunStatus

_DELTAS = (TextDelta.type, ReasoningDelta.type, ToolInputDelta.type)
"""Deltas of a part. The event that completes the part contains the whole text."""
_STEP_BEGINS = (StepStarted.type, StepReset.type)

MAX_EVENTS = 10_000
"""Limit of events in one page of history. An event may have a few KB."""
PAGE_CHARACTERS = 2_000_000
"""Limit for the events of a page. A single message may have more."""
MAX_CHARACTERS = 5_000_000
"""Limit for the events of one message. A longer message is not assembled."""


def chat_thread(user: Person, agent: str, key: str) -> Thread | None:
    """Return the thread of `user` with this key and the agent (an id or a slug), or None."""
    found = agent_named(Agent.objects.all(), agent)
    return threads_for(user).filter(key=key, agent=found).first() if found else None


def active_run(thread: Thread) -> Run | None:
    """Return the active run. Runs that are queued after it have no events yet."""
    return Run.objects.filter(thread=thread, parent=None, status__in=ACTIVE_RUNS).first()


def newest_runs(thread: Thread, *, before: int | None, limit: int) -> list[Run]:
    """Return up to `limit` runs with a number below `before`, latest first."""
    runs = Run.objects.filter(thread=thread, parent=None).exclude(NEVER_STARTED)
    if before is not None:
        runs = runs.filter(number__lt=before)
    return list(runs.order_by("-number")[:limit])


def within_reason(runs: Sequence[Run]) -> tuple[list[Run], dict[str, int]]:
    """Return the runs from the start of `runs` that fit into one page, and those that are too long.

    The first run is always returned, others only while the messages and outcomes have at most
    `MAX_EVENTS` and `PAGE_CHARACTERS` in total. A returned run is too long if the events of its
    outcome have more than `MAX_CHARACTERS`: then its id is mapped to their number of characters.
    """
    rows = _outcome_rows([run.pk for run in runs])
    sizes = {
        run_id: (count, size)
        for run_id, count, size in rows.order_by()
        .values("run")
        .annotate(count=Count("seq"), size=Sum(Length("data")))
        .values_list("run", "count", "size")
    }
    asked = dict(_asked(runs).values_list("run", Length("content")))
    events = characters = 0
    kept = list[Run]()
    for run in runs:
        count, size = sizes.get(run.pk, (0, 0))
        events += count
        characters += size + asked.get(run.pk, 0)
        if kept and (events > MAX_EVENTS or characters > PAGE_CHARACTERS):
            break
        kept.append(run)
    too_long = {run.pk: sizes.get(run.pk, (0, 0))[1] for run in kept}
    return kept, {run_id: size for run_id, size in too_long.items() if size > MAX_CHARACTERS}


def messages_of(runs: Sequence[Run]) -> dict[str, Message]:
    """Return the person's message of each run, by run id."""
    return {message.run_id: message for message in _asked(runs)}


def _asked(runs: Sequence[Run]) -> QuerySet[Message]:
    return Message.objects.filter(run__in=runs, role=MessageRole.USER, turn=0)


def outcome_events(run_ids: Collection[str], *, upto: int | None = None) -> Iterator[StoredEvent]:
    """Yield the events of runs, one run after the other, without deltas of complete texts.

    `upto` is the last seq.
    """
    rows = _outcome_rows(run_ids)
    if upto is not None:
        rows = rows.filter(seq__lte=upto)
    columns = ("run_id", "seq", "type", "data", "created_at")
    found = rows.order_by("run_id", "seq").values_list(*columns)
    for run_id, *row in found.iterator(chunk_size=EVENTS_AT_ONCE):
        yield from stored_events(run_id, [tuple(row)])


def begin_after(stream: UiStream, after: int) -> list[Chunk]:
    """Let `stream` read the events up to the seq `after`, which the client has.

    Return the first chunks of the response that continues the message.
    """
    if not after:
        return []
    for event in outcome_events([stream.run_id], upto=after):
        stream.feed(event)
    stream.finish_response()
    return stream.begin_response()


def _outcome_rows(run_ids: Collection[str]) -> QuerySet[RunEvent]:
    """Return the events without deltas, except in the last step of a failed or cancelled run.

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
    """Return the seq of the event that parked `run` for these requests, or 0.

    If the requests have been replaced, returns the last event that parked the run for approval.
    """
    parked = RunEvent.objects.filter(run=run, type=RunSuspended.type).order_by("seq")
    last = fitting = 0
    for seq, text in parked.values_list("seq", "data"):
        data = json.loads(text)
        if data["reason"] == "approval":
            last = seq
            if not set(approval_ids).isdisjoint(data["approval_ids"]):
                fitting = seq
    return fitting or last
