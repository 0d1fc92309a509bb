"""Conversations by turns, for people and programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from django.db.models import Q, QuerySet

from agents.events.read import ROWS_AT_ONCE
from agents.models import Message, Run, ToolCall

PAGE_BYTES = 2_000_000
"""Limit for messages, and for results of calls, in one page. A single turn may have more."""

Place = tuple[int, int]
"""The number of a run in its thread, and a turn of the run."""


@dataclass(slots=True)
class Turn:
    """A person's message (turn 0), or a reply of the model with its calls and later notes."""

    run_id: str
    place: Place
    messages: list[Message]
    calls: list[ToolCall] = field(default_factory=list)


def turns_after(runs: QuerySet[Run], after: Place | None, limit: int) -> tuple[list[Turn], bool]:
    """Return up to `limit` whole turns of a thread's runs, in order, and whether there are more.

    They are the turns after the place `after`; None: from the start. There are fewer if they would
    exceed `PAGE_BYTES`, but at least one, if one exists.
    """
    messages = Message.objects.filter(run__in=runs).select_related("run")
    if after is not None:
        number, turn = after
        messages = messages.filter(Q(run__number__gt=number) | Q(run__number=number, turn__gt=turn))
    ordered = messages.order_by("run__number", "turn", "position").iterator(chunk_size=ROWS_AT_ONCE)
    found: list[Turn] = []
    size = 0
    for (run_id, location), rows in _grouped(ordered):
        size += sum(len(message.content) for message in rows)
        if found and (len(found) == limit or size > PAGE_BYTES):
            return _with_calls(found)[0], True
        found.append(Turn(run_id, location, rows))
    return _with_calls(found)


def _grouped(messages: Iterator[Message]) -> Iterator[tuple[tuple[str, Place], list[Message]]]:
    for key, rows in groupby(messages, lambda row: (row.run_id, (row.run.number, row.turn))):
        yield key, list(rows)


def _with_calls(turns: list[Turn]) -> tuple[list[Turn], bool]:
    """Return the turns with their calls, and whether turns were omitted because of large results.

    Takes one query for each run of the page. The replies contain the inputs of calls.
    """
    by_run: dict[str, dict[int, Turn]] = defaultdict(dict)
    for turn in turns:
        by_run[turn.run_id][turn.place[1]] = turn
    size = 0
    for run_id, by_turn in by_run.items():
        rows = ToolCall.objects.filter(run=run_id, turn__gte=min(by_turn), turn__lte=max(by_turn))
        rows = rows.defer("input", "edited_input").order_by("turn", "position")
        for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
            turn = by_turn[row.turn]
            size += len(row.result)
            if size > PAGE_BYTES and turn is not turns[0]:
                return [each for each in turns if each.place < turn.place], True
            turn.calls.append(row)
    return turns, False
