"""The spans of one run, from its rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from agents.events.catalogue.messages import StepStarted
from agents.events.catalogue.runs import RunResumed, RunSuspended
from agents.models import Message, MessageRole, Run, RunEvent, ToolCall
from agents.states import OPEN_CALLS, ToolCallStatus

Kind = Literal["queue", "model", "tool", "wait"]
Status = Literal["running", "done", "failed"]

_Event = tuple[str, str, datetime]
"""The type, the data and the time of an event."""
_SUCCEEDED = (ToolCallStatus.SUCCEEDED, ToolCallStatus.ANSWERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call. `cost` is in US dollars, None if the price is unknown."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: Decimal | None

    @property
    def prompt_tokens(self) -> int:
        """Return the tokens of the prompt, with those read from and written to a cache."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cached_percent(self) -> int:
        """Return the part of the prompt that was read from the cache, in percent."""
        prompt = self.prompt_tokens
        return round(100 * self.cache_read_tokens / prompt) if prompt else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a run's time.

    `kind` is `queue` (before a worker starts the run), `model` (a model call), `tool` (a tool call)
    or `wait` (parked). `name` is the model, the tool, or the reason of the wait.
    """

    run_id: str
    kind: Kind
    name: str
    start: datetime
    end: datetime | None = None
    """None while the span is running."""
    status: Status = "done"
    turn: int | None = None
    """The number of the model call, from 1. A tool call has the number of the reply with it."""
    call: int | None = None
    """The primary key of the tool call."""
    call_id: str = ""
    usage: Usage | None = None
    """The usage of a model call that has ended."""


def spans_of(runs: Sequence[Run]) -> dict[str, list[Span]]:
    """Return the spans of each run by its id, sorted by start: with three queries for all runs."""
    events, replies, calls = _events_of(runs), _replies_of(runs), _calls_of(runs)
    found: dict[str, list[Span]] = {}
    for run in runs:
        steps, waits = _events(run, events[run.pk])
        spans = [
            _queue(run),
            *_model_calls(run, replies[run.pk], steps),
            *_tool_calls(run, calls[run.pk]),
            *waits,
        ]
        found[run.pk] = sorted(spans, key=lambda span: span.start)
    return found


def _events_of(runs: Sequence[Run]) -> dict[str, list[_Event]]:
    types = (StepStarted.type, RunSuspended.type, RunResumed.type)
    rows = RunEvent.objects.filter(run__in=runs, type__in=types).order_by("run", "seq")
    found: dict[str, list[_Event]] = defaultdict(list)
    for run_id, kind, data, moment in rows.values_list("run_id", "type", "data", "created_at"):
        found[run_id].append((kind, data, moment))
    return found


def _replies_of(runs: Sequence[Run]) -> dict[str, list[Message]]:
    rows = Message.objects.filter(run__in=runs, role=MessageRole.ASSISTANT)
    found: dict[str, list[Message]] = defaultdict(list)
    for reply in rows.order_by("run", "turn").defer("content"):
        found[reply.run_id].append(reply)
    return found


def _calls_of(runs: Sequence[Run]) -> dict[str, list[ToolCall]]:
    rows = ToolCall.objects.filter(run__in=runs, started_at__isnull=False)
    found: dict[str, list[ToolCall]] = defaultdict(list)
    for call in rows.defer("input", "edited_input", "result"):
        found[call.run_id].append(call)
    return found


def _queue(run: Run) -> Span:
    end = run.started_at or run.ended_at
    status: Status = "done" if end else "running"
    return Span(run_id=run.pk, kind="queue", name="", start=run.created_at, end=end, status=status)


def _events(run: Run, rows: Iterable[_Event]) -> tuple[dict[int, datetime], list[Span]]:
    """Return the start of each model call by number, and the waits."""
    steps: dict[int, datetime] = {}
    waits: list[Span] = []
    begun: tuple[str, datetime] | None = None
    for kind, data, moment in rows:
        if kind == StepStarted.type:
            # A call that is made again starts with its first attempt.
            steps.setdefault(json.loads(data)["step"], moment)
        elif kind == RunSuspended.type:
            begun = (json.loads(data)["reason"], moment)
        elif begun is not None:
            reason, start = begun
            waits.append(Span(run_id=run.pk, kind="wait", name=reason, start=start, end=moment))
            begun = None
    if begun is not None:
        reason, start = begun
        waits.append(_open(run, "wait", reason, start))
    return steps, waits


def _model_calls(
    run: Run, replies: Iterable[Message], steps: dict[int, datetime]
) -> Iterator[Span]:
    before = run.started_at or run.created_at
    for reply in replies:
        # The event of the start is lost if the process died in the same moment.
        start = steps.pop(reply.turn, before)
        cost = reply.cost_microusd
        yield Span(
            run_id=run.pk,
            kind="model",
            name=reply.model,
            start=min(start, reply.created_at),
            end=reply.created_at,
            turn=reply.turn,
            usage=Usage(
                input_tokens=reply.input_tokens,
                output_tokens=reply.output_tokens,
                cache_read_tokens=reply.cache_read_tokens,
                cache_write_tokens=reply.cache_write_tokens,
                cost=None if cost is None else Decimal(cost) / 1_000_000,
            ),
        )
        before = reply.created_at
    for turn, start in steps.items():
        yield _open(run, "model", run.spec.get("model", ""), start, turn=turn)


def _tool_calls(run: Run, calls: Iterable[ToolCall]) -> Iterator[Span]:
    for call in calls:
        status: Status = "running" if call.status in OPEN_CALLS else "failed"
        if call.status in _SUCCEEDED and not call.is_error:
            status = "done"
        start = call.started_at
        if start is None:  # excluded by the query
            continue
        yield Span(
            run_id=run.pk,
            kind="tool",
            name=call.tool,
            start=start,
            end=call.finished_at or run.ended_at,
            status=status,
            turn=call.turn,
            call=call.pk,
            call_id=call.call_id,
        )


def _open(run: Run, kind: Kind, name: str, start: datetime, turn: int | None = None) -> Span:
    """Return a span that is running, or that the end of the run has ended."""
    status: Status = "failed" if run.ended_at else "running"
    return Span(
        run_id=run.pk, kind=kind, name=name, start=start, end=run.ended_at, status=status, turn=turn
    )
