"""The trace of a run and of its subagents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from agents.features.traces.spans import Kind, Span, spans_of
from agents.models import Run
from agents.selectors.family import descendants_of
from agents.selectors.visible import Person, watchable_runs_for

MAX_RUNS = 50
"""A trace contains the run and its first subagents, up to this number."""


@dataclass(frozen=True, slots=True)
class Row:
    """A span in its place.

    `depth` is 0 for spans of the run, 1 for those of its subagents, and so on.
    """

    span: Span
    depth: int
    agent: str
    """The name of the agent or subagent."""
    begins_agent: bool
    """Whether this is the first span of a subagent."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of a run and its subagents, each subagent after the call that started it.

    `times` are the sums of the run's own spans. Tool calls of a turn can run at the same time, so a
    sum can be longer than the run.
    """

    start: datetime
    end: datetime
    rows: list[Row]
    times: dict[Kind, timedelta]
    omitted_runs: int


def trace_of(run: Run, person: Person, now: datetime | None = None) -> Trace:
    """Return the trace of a run, with the subagents that `person` may watch.

    Args:
        now: The end of spans that are running; by default the current time.
    """
    now = now or timezone.now()
    members = descendants_of(run.pk, watchable_runs_for(person).select_related("agent_version"))
    shown = members[: MAX_RUNS - 1]
    below: dict[tuple[str | None, int | None], list[Run]] = defaultdict(list)
    for member in shown:
        below[member.parent_id, member.parent_call_id].append(member)
    rows = list(_rows(run, 0, below, spans_of([run, *shown])))
    ends = [row.span.end or now for row in rows]
    return Trace(
        start=run.created_at,
        end=max([*ends, run.created_at]),
        rows=rows,
        times=_times((row.span for row in rows if row.depth == 0), now),
        omitted_runs=len(members) - len(shown),
    )


def _rows(
    run: Run,
    depth: int,
    below: dict[tuple[str | None, int | None], list[Run]],
    spans: Mapping[str, Sequence[Span]],
) -> Iterator[Row]:
    name = run.subagent or run.spec.get("name", "")
    is_first = depth > 0
    for span in spans[run.pk]:
        yield Row(span, depth, name, is_first)
        is_first = False
        if span.call is not None:
            for child in below.pop((run.pk, span.call), ()):
                yield from _rows(child, depth + 1, below, spans)
    # Subagents whose call has not started or does not exist any more.
    for key in [key for key in below if key[0] == run.pk]:
        for child in below.pop(key):
            yield from _rows(child, depth + 1, below, spans)


def _times(spans: Iterable[Span], now: datetime) -> dict[Kind, timedelta]:
    found: dict[Kind, timedelta] = {}
    for span in spans:
        length = (span.end or now) - span.start
        found[span.kind] = found.get(span.kind, timedelta()) + length
    return found
