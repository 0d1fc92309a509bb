"""What was said in runs, a turn at a time, as people and programs read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from django.db.models import Q, QuerySet

from agents.models import Message, Run, ToolCall

PAGE_BYTES = 2_000_000
"""What is said in one page; a single turn may have more."""

Place = tuple[int, int]
"""A run's number in its thread, and the turn in it."""


@dataclass(slots=True)
class Turn:
    """A person's message (turn 0), or a reply of the model, its calls, and notes after these."""

    run_id: str
    place: Place
    messages: list[Message]
    calls: list[ToolCall] = field(default_factory=list)


def turns_after(runs: QuerySet[Run], after: Place | None, limit: int) -> tuple[list[Turn], bool]:
    """At most `limit` whole turns of runs of one thread, in order; and whether there are more."""
    messages = Message.objects.filter(run__in=runs).select_related("run")
    if after is not None:
        number, turn = after
        messages = messages.filter(Q(run__number__gt=number) | Q(run__number=number, turn__gt=turn))
    ordered = messages.order_by("run__number", "turn", "pk").iterator(chunk_size=50)
    found: list[Turn] = []
    size = 0
    for (run_id, place), said in _grouped(ordered):
        size += sum(len(message.content) for message in said)
        if found and (len(found) == limit or size > PAGE_BYTES):
            _add_calls(found)
            return found, True
        found.append(Turn(run_id, place, said))
    _add_calls(found)
    return found, False


def _grouped(messages: Iterator[Message]) -> Iterator[tuple[tuple[str, Place], list[Message]]]:
    for key, said in groupby(messages, lambda row: (row.run_id, (row.run.number, row.turn))):
        yield key, list(said)


def _add_calls(turns: list[Turn]) -> None:
    """One query for each run of the page."""
    by_run: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        by_run[turn.run_id].append(turn)
    for run_id, own in by_run.items():
        by_turn = {turn.place[1]: turn for turn in own}
        rows = ToolCall.objects.filter(run=run_id, turn__gte=min(by_turn), turn__lte=max(by_turn))
        for row in rows.order_by("turn", "position"):
            by_turn[row.turn].calls.append(row)
