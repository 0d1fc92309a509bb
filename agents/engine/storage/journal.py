"""The writes of a driver in each turn, in raw SQL because they are frequent.

Invariant 1: every function here starts with `_touch` or `_touch_with_totals`. In one statement,
they check the fencing token, assign the events' sequence numbers, add to the totals and lock the
clock row. If the driver no longer has the lease, `FenceLost` is raised and nothing is written.

Invariant 2, journal before effect: `write_reply` stores the reply together with its calls,
`write_started` commits before a call that changes something runs, `write_results` writes each
result exactly once.

Each function runs inside a transaction of `agents.engine.storage.database`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from agents.engine.errors import FenceLost
from agents.engine.storage.sql import (
    CLOCK,
    EVENT,
    MESSAGE,
    THREAD,
    TOOL_CALL,
    insert_rows,
    timestamp,
)
from agents.events.append import EventDraft, encode, notify_watchers
from agents.kernel.lease import Writer as Writer
from agents.kernel.middleware import Commit
from agents.kernel.tool_calls import Call as Call
from agents.models import Effect, MessageRole
from agents.models.database_clock import now_sql
from agents.models.message import MODEL
from agents.providers.base import Reply, Usage
from agents.services.errors import ServiceError
from agents.states import ToolCallStatus


@dataclass(slots=True)
class Outcome:
    """The outcome of a call. `result` is JSON text; `commit` writes more rows with it."""

    call: Call
    status: str
    result: str
    is_error: bool = False
    code: str = ""
    events: list[EventDraft] = field(default_factory=list)
    commit: Callable[[], None] | None = None
    commits: Sequence[Commit] = ()
    """Writes of middleware in the same transaction."""


class CommitRefused(Exception):
    """The rows of a result cannot be written: the data has changed since the tool checked it."""

    def __init__(self, outcome: Outcome, problem: ServiceError) -> None:
        super().__init__(problem.message)
        self.outcome = outcome
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a call waits for: the end of runs, or a time.

    `until` is this time in seconds since 1970; None: only the end of the runs.
    """

    run_ids: Sequence[str]
    until: float | None


@dataclass(frozen=True, slots=True)
class Totals:
    """What one model call adds to the run's totals.

    `cost` is in millionths of a dollar, None if the price is unknown.
    """

    usage: Usage
    cost: int | None
    active_ms: int


EVENT_COLUMNS = ("run_id", "seq", "type", "data", "version", "created_at")
MESSAGE_COLUMNS = (
    "run_id",
    "turn",
    "position",
    "author",
    "role",
    "content",
    "stop_reason",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "created_at",
)
REPLY_COLUMNS = (*MESSAGE_COLUMNS, "cost_microusd")
CALL_COLUMNS = (
    "run_id",
    "turn",
    "position",
    "call_id",
    "tool",
    "input",
    "edited_input",
    "effect",
    "status",
    "attempt",
    "is_error",
    "code",
    "result",
    "started_at",
    "finished_at",
)


def _touch(writer: Writer, events: int) -> int:
    """Check the fencing token, and return the last sequence number of `events` new events."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{CLOCK}" SET seq = seq + %s'
            f" WHERE run_id = %s AND fence = %s AND lease_until > {now_sql()} RETURNING seq",
            [events, writer.run_id, writer.fence],
        )
        row = cursor.fetchone()
    if row is None:
        raise FenceLost(writer.run_id)
    return int(row[0])


def _touch_with_totals(writer: Writer, events: int, totals: Totals) -> tuple[int, bool]:
    """Do the same as `_touch` for a reply, and also return `RunClock.noticed`."""
    usage = totals.usage
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{CLOCK}" SET seq = seq + %s, turn = turn + 1, lost_drivers = 0,'
            " input_tokens = input_tokens + %s, output_tokens = output_tokens + %s,"
            " cache_read_tokens = cache_read_tokens + %s,"
            " cache_write_tokens = cache_write_tokens + %s,"
            " cost_microusd = cost_microusd + %s, cost_known = cost_known AND %s,"
            " active_ms = active_ms + %s"
            f" WHERE run_id = %s AND fence = %s AND lease_until > {now_sql()}"
            " RETURNING seq, noticed",
            [
                events,
                usage.input,
                usage.output,
                usage.cache_read,
                usage.cache_write,
                totals.cost or 0,
                totals.cost is not None,
                totals.active_ms,
                writer.run_id,
                writer.fence,
            ],
        )
        row = cursor.fetchone()
    if row is None:
        raise FenceLost(writer.run_id)
    return int(row[0]), bool(row[1])


def _insert_events(writer: Writer, last: int, drafts: Sequence[EventDraft], now: Any) -> None:
    if not drafts:
        return
    first = last - len(drafts) + 1
    insert_rows(
        EVENT,
        EVENT_COLUMNS,
        [
            (writer.run_id, first + number, *encode(draft), 1, now)
            for number, draft in enumerate(drafts)
        ],
    )
    notify_watchers(writer.run_id)


def check_fence(writer: Writer) -> None:
    """Check the fencing token at the start of a transaction. Raises `FenceLost`."""
    _touch(writer, 0)


def write_events(writer: Writer, drafts: Sequence[EventDraft]) -> None:
    """Write events that belong to no other row, such as streamed text."""
    last = _touch(writer, len(drafts))
    _insert_events(writer, last, drafts, timestamp())


def write_reply(
    writer: Writer,
    turn: int,
    content: str,
    reply: Reply,
    calls: Sequence[Call],
    drafts: Sequence[EventDraft],
    totals: Totals,
) -> bool:
    """Write the model's reply, its calls and events.

    `content` is the JSON text of `reply.blocks`, as it will be sent back to the model. The caller
    has given calls that may run immediately the status `started`. Returns whether another process
    has changed the run since its claim (`RunClock.noticed`).
    """
    last, noticed = _touch_with_totals(writer, len(drafts), totals)
    now = timestamp()
    usage = totals.usage
    insert_rows(
        MESSAGE,
        REPLY_COLUMNS,
        [
            (
                writer.run_id,
                turn,
                0,
                MODEL,
                MessageRole.ASSISTANT.value,
                content,
                reply.stop_reason,
                reply.model,
                usage.input,
                usage.output,
                usage.cache_read,
                usage.cache_write,
                now,
                totals.cost,
            )
        ],
    )
    if calls:
        insert_rows(
            TOOL_CALL,
            CALL_COLUMNS,
            [
                (
                    writer.run_id,
                    call.turn,
                    call.position,
                    call.call_id,
                    call.tool,
                    call.input,
                    "",
                    call.effect,
                    call.status,
                    call.attempt,
                    call.is_error,
                    call.code,
                    call.result,
                    now if call.status == ToolCallStatus.STARTED else None,
                    now if call.status == ToolCallStatus.INVALID else None,
                )
                for call in calls
            ],
        )
    _insert_events(writer, last, drafts, now)
    return noticed


def write_started(writer: Writer, call: Call, drafts: Sequence[EventDraft]) -> None:
    """Record that `call` is about to run.

    If it may change something, this also raises the workspace generation. Raises `FenceLost` also
    if the call's status has changed.
    """
    last = _touch(writer, len(drafts))
    now = timestamp()
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{TOOL_CALL}" SET status = %s, attempt = attempt + 1, started_at = %s'
            " WHERE run_id = %s AND turn = %s AND position = %s AND status = %s",
            [
                ToolCallStatus.STARTED.value,
                now,
                writer.run_id,
                call.turn,
                call.position,
                call.status,
            ],
        )
        if cursor.rowcount != 1:
            raise FenceLost(f"{writer.run_id}: call {call.call_id} is not {call.status} any more")
        if call.effect != Effect.READ:
            cursor.execute(
                f'UPDATE "{THREAD}" SET workspace_generation = workspace_generation + 1'
                " WHERE id = %s",
                [writer.thread_id],
            )
    _insert_events(writer, last, drafts, now)


def write_attempt(writer: Writer, call: Call, drafts: Sequence[EventDraft]) -> None:
    """Record another attempt of a started call that only reads."""
    last = _touch(writer, len(drafts))
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{TOOL_CALL}" SET attempt = attempt + 1'
            " WHERE run_id = %s AND turn = %s AND position = %s AND status = %s AND effect = %s",
            [
                writer.run_id,
                call.turn,
                call.position,
                ToolCallStatus.STARTED.value,
                Effect.READ.value,
            ],
        )
        if cursor.rowcount != 1:
            raise FenceLost(f"{writer.run_id}: call {call.call_id} is not started any more")
    _insert_events(writer, last, drafts, timestamp())


def write_results(
    writer: Writer, outcomes: Sequence[Outcome], drafts: Sequence[EventDraft] = ()
) -> None:
    """Write the results of calls, each exactly once, and other rows of the same transaction.

    `drafts` are written first: they contain the last output of calls that end here. Raises
    `FenceLost`, and `CommitRefused`: then nothing is written.
    """
    events = list(drafts)
    events += [draft for outcome in outcomes for draft in outcome.events]
    last = _touch(writer, len(events))
    now = timestamp()
    with connection.cursor() as cursor:
        for outcome in outcomes:
            call = outcome.call
            cursor.execute(
                f'UPDATE "{TOOL_CALL}" SET status = %s, is_error = %s, code = %s, result = %s,'
                " finished_at = %s"
                " WHERE run_id = %s AND turn = %s AND position = %s AND status = %s",
                [
                    outcome.status,
                    outcome.is_error,
                    outcome.code,
                    outcome.result,
                    now,
                    writer.run_id,
                    call.turn,
                    call.position,
                    call.status,
                ],
            )
            if cursor.rowcount != 1:
                raise FenceLost(
                    f"{writer.run_id}: call {call.call_id} is not {call.status} any more"
                )
            if outcome.commit is not None:
                try:
                    outcome.commit()
                except ServiceError as problem:
                    raise CommitRefused(outcome, problem) from problem
            for commit in outcome.commits:
                commit.write()
    _insert_events(writer, last, events, now)
