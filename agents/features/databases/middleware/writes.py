"""Calls of execute_sql that write: tried and shown, approved, and carried out once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase, own_database
from agents.features.databases.drivers.statement import looks_like_writing
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.inputs import ExecuteSqlInput
from agents.features.databases.limits import MOST_SECONDS
from agents.features.databases.middleware.calls import meant_name, target_of
from agents.features.databases.options import DatabaseNames
from agents.features.databases.queries import DatabaseUnavailable
from agents.kernel.lazy_modules import lazy_modules
from agents.middleware.base import Tool, ToolResult, error
from agents.middleware.context import Preview, ToolContext
from agents.models import Effect
from agents.spec import AgentSpec
from sandbox.cancellation import Cancellation

with lazy_modules:
    from agents.features.databases.drivers import write  # takes 70 ms with psycopg


_Do = Callable[[DatabaseTarget, OwnDatabase, Cancellation], Any]


def writable(spec: AgentSpec) -> tuple[str, ...]:
    """Return the databases that the agent may request to write; none for a read-only agent."""
    return () if spec.read_only else spec.option(DatabaseNames).writable_databases


def writing_variant(spec: AgentSpec) -> Callable[[ExecuteSqlInput], Tool[ExecuteSqlInput] | None]:
    """Return a function that selects the writing variant of execute_sql."""
    names = writable(spec)
    databases = spec.option(DatabaseNames).databases

    def variant(given: ExecuteSqlInput) -> Tool[ExecuteSqlInput] | None:
        # A write that looks like a read runs in a read-only session and fails.
        is_write = meant_name(databases, given.database) in names
        return WRITE_SQL if is_write and looks_like_writing(given.query) else None

    return variant


async def try_write(context: ToolContext, given: ExecuteSqlInput) -> Preview | ToolResult:
    """Return the preview of the statement's changes, or an error result."""

    def work(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> Preview:
        return write.try_sql(target, given.query, given.params, own, cancel)

    done = await _do(context, given, work)
    return done if isinstance(done, ToolResult) else dict(done)


async def run_write(context: ToolContext, given: ExecuteSqlInput) -> ToolResult:
    """Make the approved changes. The result is correct even if the call is cancelled."""
    approved = context.approved
    if approved is None:
        return error(
            "The effect of this statement was not approved; nothing was written.", "denied"
        )

    def work(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> ToolResult:
        return _result(write.write_sql(target, given.query, given.params, own, cancel, approved))

    done: ToolResult = await _do(context, given, work)
    return done


async def _do(context: ToolContext, given: ExecuteSqlInput, work: _Do) -> Any:
    """Call `work` in a thread. QueryFailed becomes an error result."""
    cancel = Cancellation()
    ended: list[Any] = []
    try:
        target = await target_of(context, given.database)
        own = await context.in_database(own_database)
    except DatabaseUnavailable as problem:
        return error(str(problem), "no_database")

    def blocking() -> None:
        try:
            ended.append(work(target, own, cancel))
        except QueryFailed as problem:
            ended.append(error(str(problem), problem.code))

    try:
        await context.in_thread(blocking, on_cancel=cancel.cancel)
    except asyncio.CancelledError:
        # The thread has ended, so its result is known and more exact than a cancellation.
        if not ended:
            raise
    return ended[0]


def _result(changes: Changes) -> ToolResult:
    words = ("inserted", "updated", "deleted")
    content: dict[str, Any] = {
        "success": True,
        "rows_changed": changes.row_count,
        "tables": {
            table.table: {
                word: count for word, count in zip(words, table.counts, strict=True) if count
            }
            for table in changes.tables
        },
    }
    if changes.returned.columns:
        content["returned"] = changes.returned.to_markdown_table(max_rows=50)
    return ToolResult(content)


WRITE_SQL = Tool(
    "execute_sql",
    "Run one INSERT, UPDATE or DELETE.",
    ExecuteSqlInput,
    run_write,
    Effect.EXTERNAL,
    time_limit=float(MOST_SECONDS),
    trial=try_write,
)
"""Not offered as a tool: the variant of execute_sql for calls that write."""
