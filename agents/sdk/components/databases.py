"""SQL databases for a program, with the same checks as for an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.table import QueryResult as Table
from agents.features.databases.drivers.target import DatabaseTarget
from agents.kernel.lazy_modules import lazy_modules
from agents.sdk import arguments
from agents.sdk.environment.process import engine
from agents.sdk.environment.project import prepare
from agents.sdk.environment.threads import in_thread
from agents.sdk.errors import SetupError
from sandbox.cancellation import Cancellation

with lazy_modules:
    # Importing the drivers takes 0.2 s, and programs without databases import this module too.
    from agents.features.databases.drivers import address, inspect, own_database, write


T = TypeVar("T")


@dataclass
class QueryResult:
    """The result of a statement; `error` is None on success."""

    columns: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    row_count: int = 0
    truncated: bool = False
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": self.columns,
            "rows": self.rows,
            "row_count": self.row_count,
            "truncated": self.truncated,
            "error": self.error,
            "success": self.error is None,
        }

    def to_markdown_table(self, max_rows: int = 20) -> str:
        if self.error is not None:
            return f"Error: {self.error}"
        if not self.rows:
            return "No results"
        values = [tuple(row.get(name) for name in self.columns) for row in self.rows]
        return Table(tuple(self.columns), values).to_markdown_table(max_rows)


class DatabaseBackend:
    """Statements on named databases. Errors are in the result.

    With `read_only=False` a SELECT, INSERT, UPDATE or DELETE is one transaction on SQLite and
    PostgreSQL; other databases can only be read. Statements that write at the same time wait for
    each other, for at most `query_timeout` seconds.
    """

    def __init__(
        self,
        connections: Mapping[str, str],
        read_only: bool = True,
        query_timeout: float = 30,
        row_limit: int = 10_000,
    ) -> None:
        self.connections: dict[str, str] = arguments.named(
            "connections", connections, '{"shop": URL}'
        )
        if not all(isinstance(url, str) and url for url in self.connections.values()):
            raise SetupError("connections: each URL must be a text.")
        self.read_only = read_only
        arguments.check_flags(self, ("read_only",))
        self.query_timeout = query_timeout
        arguments.check_positive("query_timeout", query_timeout)
        self.row_limit = row_limit
        arguments.check_number("row_limit", row_limit, 1)

    async def execute(
        self, query: str, database: str = "default", params: Mapping[str, Any] | None = None
    ) -> QueryResult:
        """Run one statement; `params` are values for `:name` in it."""
        found = await self._ask(
            database,
            lambda target, own, cancel: write.execute_sql(target, query, params, own, cancel),
        )
        if found.error is None or self.read_only:
            return found
        return await self._write(query, database, params, found)

    async def get_schema(self, database: str = "default") -> QueryResult:
        """Return a row for each column of each table."""
        return await self._ask(database, inspect.get_schema)

    async def get_tables(self, database: str = "default") -> QueryResult:
        """Return a row for each table and view."""
        return await self._ask(database, inspect.list_tables)

    async def describe_table(self, table: str, database: str = "default") -> QueryResult:
        """Return a row for each column of a table."""
        return await self._ask(
            database,
            lambda target, own, cancel: inspect.describe_table(target, table, own, cancel),
        )

    async def close(self) -> None:
        """Release the engine. Idle connections are closed automatically."""
        await in_thread(engine.leave, self)

    async def _call(self, database: str, work: Callable[..., T]) -> T:
        """Call `work` with the target on a thread. Raises `QueryFailed`."""
        cancel = Cancellation()

        def call() -> T:
            target, own = self._target(database)
            return work(target, own, cancel)

        try:
            return await in_thread(call)
        except asyncio.CancelledError:
            cancel.cancel()
            raise

    async def _ask(self, database: str, ask: Callable[..., Table]) -> QueryResult:
        try:
            table = await self._call(database, ask)
        except QueryFailed as problem:
            return QueryResult(error=str(problem))
        return QueryResult(
            list(table.columns), table.rows, table.row_count, table.truncated, table.error
        )

    async def _write(
        self, query: str, database: str, params: Mapping[str, Any] | None, refused: QueryResult
    ) -> QueryResult:
        try:
            changes = await self._call(
                database,
                lambda target, own, cancel: write.write_now(target, query, params, own, cancel),
            )
        except QueryFailed as problem:
            if problem.code == "invalid":
                return refused
            if problem.code == "read_only":
                return QueryResult(error=f"{refused.error}\n{problem}")
            return QueryResult(error=str(problem))
        returned = changes.returned
        return QueryResult(list(returned.columns), returned.rows, changes.row_count)

    def _target(self, database: str) -> tuple[DatabaseTarget, Any]:
        """Return the target and the identity of Vel's database. Blocks. Raises `QueryFailed`."""
        prepare()

        names = list(self.connections)
        meant = names[0] if database == "default" and len(names) == 1 else database
        if meant not in self.connections:
            raise QueryFailed(f"There is no database {database!r}: {', '.join(names) or 'none'}.")
        try:
            url = address.checked_url(self.connections[meant], resolve=True)
        except address.AddressRefused as problem:
            raise QueryFailed(f"{meant}: {problem}") from None
        engine.join(self)
        target = DatabaseTarget(
            name=meant,
            url=url,
            statement_seconds=self.query_timeout,
            max_rows=self.row_limit,
            allow_writes=not self.read_only,
        )
        return target, engine.ask(own_database.own_database).result()
