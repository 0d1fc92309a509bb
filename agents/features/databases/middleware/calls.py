"""The calls of the database tools that read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase, own_database
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.inputs import DatabaseInput, DescribeTableInput, ExecuteSqlInput
from agents.features.databases.middleware.text import shown_rows, shown_schema, shown_tables
from agents.features.databases.options import DatabaseNames
from agents.features.databases.queries import (
    DatabaseUnavailable,
    connections_of_run,
    targets_of,
)
from agents.kernel.lazy_modules import lazy_modules
from agents.middleware.base import ToolResult, error
from agents.middleware.context import ToolContext
from sandbox.cancellation import Cancellation

with lazy_modules:
    # The drivers take 8 MiB, which only agents with databases need.
    from agents.features.databases.drivers import inspect, write


_Ask = Callable[[DatabaseTarget, OwnDatabase, Cancellation], QueryResult]


def meant_name(names: Sequence[str], name: str) -> str:
    """Return `name`, or for `default` the name of the only database."""
    return names[0] if name == "default" and name not in names and len(names) == 1 else name


def known_name(names: Sequence[str], name: str) -> str:
    """Return the same as `meant_name`. Raises `DatabaseUnavailable` if it is not in `names`."""
    name = meant_name(names, name)
    if name in names:
        return name
    if name == "default" and names:
        raise DatabaseUnavailable(f"Say which database: {', '.join(names)}.")
    known = ", ".join(names) or "none"
    raise DatabaseUnavailable(f"There is no database {name[:100]!r}: {known}.")


async def target_of(context: ToolContext, name: str) -> DatabaseTarget:
    """Return the target of the database `name`, from the present connections of the agent.

    The remaining time of the call limits `statement_seconds`. Raises `DatabaseUnavailable`.
    """
    names = context.spec.option(DatabaseNames).databases
    name = known_name(names, name)
    target = (await targets_of_agent(context))[name]
    return replace(target, statement_seconds=min(target.statement_seconds, context.deadline))


async def targets_of_agent(context: ToolContext) -> Mapping[str, DatabaseTarget]:
    """Return the agent's present databases among those of the version, by name.

    Targets contain passwords: no part of a URL may be in a result, an event or a log. Raises
    `DatabaseUnavailable`, with a message for the model, if the version names databases but none can
    be used; `targets[name]` raises it for one of several.
    """
    names = context.spec.option(DatabaseNames).databases
    # Read again for each call, so that a removed connection is not used again.
    rows = await context.in_database(connections_of_run, context.agent_id, context.owner_id, names)
    return await context.in_thread(targets_of, rows, names)


async def answer(
    context: ToolContext,
    database: str,
    ask: _Ask,
    show: Callable[[DatabaseTarget, QueryResult], Any],
) -> ToolResult:
    """Call `ask` in a thread, and return its result in the form of `show`.

    A failed statement and an unavailable database become error results. A cancelled call cancels
    its statement on the server and waits.
    """
    cancel = Cancellation()
    try:
        target = await target_of(context, database)
        own = await context.in_database(own_database)

        def blocking() -> Any:
            return show(target, ask(target, own, cancel))

        return ToolResult(await context.in_thread(blocking, on_cancel=cancel.cancel))
    except DatabaseUnavailable as problem:
        return error(str(problem), "no_database")
    except QueryFailed as problem:
        return error(str(problem), problem.code)


async def run_execute_sql(context: ToolContext, given: ExecuteSqlInput) -> ToolResult:
    def ask(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
        return write.execute_sql(target, given.query, given.params, own, cancel)

    def show(target: DatabaseTarget, result: QueryResult) -> dict[str, Any]:
        return shown_rows(context, result)

    return await answer(context, given.database, ask, show)


async def run_get_schema(context: ToolContext, given: DatabaseInput) -> ToolResult:
    def ask(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
        return inspect.get_schema(target, own, cancel)

    return await answer(context, given.database, ask, shown_schema)


async def run_list_tables(context: ToolContext, given: DatabaseInput) -> ToolResult:
    def ask(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
        return inspect.list_tables(target, own, cancel)

    return await answer(context, given.database, ask, shown_tables)


async def run_describe_table(context: ToolContext, given: DescribeTableInput) -> ToolResult:
    def ask(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
        return inspect.describe_table(target, given.table, own, cancel)

    def show(target: DatabaseTarget, result: QueryResult) -> str:
        return result.to_markdown_table(max_rows=result.row_count)

    return await answer(context, given.database, ask, show)
