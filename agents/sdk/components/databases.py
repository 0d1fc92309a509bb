"""SQL databases for a program, with the same checks as for an agent."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from agents.custom.tool_spec import ToolSpec
from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.table import QueryResult as Table
from agents.features.databases.drivers.target import DatabaseTarget
from agents.kernel.lazy_modules import lazy_modules
from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.config import DeepAgentConfig
from agents.sdk.environment.process import engine
from agents.sdk.environment.project import prepare
from agents.sdk.environment.threads import in_thread
from agents.sdk.errors import SetupError
from sandbox.cancellation import Cancellation

with lazy_modules:
    # Import late: the drivers take 0.2 s, and programs without databases import this module too.
    from agents.features.databases import inputs, queries
    from agents.features.databases.drivers import address, inspect, own_database, statement, write
    from agents.features.databases.middleware import calls


T = TypeVar("T")


@dataclass
class QueryResult:
    """The result of a statement; `error` is None on success.

    `row_count` is the number of rows that were read or changed. `truncated`: there are more rows.

    >>> print(QueryResult(["name"], [{"name": "Ann"}], 1).to_markdown_table())
    | name |
    ...
    | Ann |
    """

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
        """Return the first `max_rows` rows as a Markdown table. Raises `SetupError` below 0."""
        arguments.check_number("max_rows", max_rows, 0)
        if self.error is not None:
            return f"Error: {self.error}"
        if not self.rows:
            return "No results"
        values = [tuple(row.get(name) for name in self.columns) for row in self.rows]
        table = Table(tuple(self.columns), values).to_markdown_table(max_rows)
        return f"{table}\n\nThere are more rows, which were not read." if self.truncated else table


class DatabaseBackend:
    """Statements on named databases. Errors of a database are in the result, not raised.

    With `read_only=False` a SELECT, INSERT, UPDATE or DELETE is one transaction on SQLite and
    PostgreSQL; other databases can only be read. Statements that write at the same time wait for
    each other, for at most `query_timeout` seconds.

    >>> open("shop.sqlite3", "a").close()
    >>> backend = DatabaseBackend({"shop": f"sqlite:///{os.path.abspath('shop.sqlite3')}"})
    >>> asyncio.run(backend.execute("select 1 + :more as total", params={"more": 2})).rows
    [{'total': 3}]
    >>> asyncio.run(backend.close())
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
        self._token = object()
        weakref.finalize(self, engine.discard, self._token)

    async def execute(
        self, query: str, database: str = "default", params: Mapping[str, Any] | None = None
    ) -> QueryResult:
        """Run one statement and return its result. `params` are values for `:name` in it.

        With `read_only=False`, it can also write. An error of the database is not raised: it is
        the `error` of the result.

        Values in rows are Python objects: `Decimal`, `datetime`, `list`. Values that Python does
        not have are text, for example the date `infinity`. So is JSON of MariaDB, which stores it
        as text without its type.
        """
        return await self._execute(query, database, params, native=True)

    async def execute_as_text(
        self, query: str, database: str = "default", params: Mapping[str, Any] | None = None
    ) -> QueryResult:
        """Run one statement as `execute` does, with values for a model: numbers or text."""
        return await self._execute(query, database, params, native=False)

    async def get_schema(self, database: str = "default") -> QueryResult:
        """Return a row for each column of each table."""
        return await self._ask(database, inspect.get_schema)

    async def get_tables(self, database: str = "default") -> QueryResult:
        """Return a row for each table and view."""
        return await self._ask(database, inspect.list_tables)

    async def describe_table(self, table: str, database: str = "default") -> QueryResult:
        """Return a row for each column of a table."""
        _check_texts(table=table)
        return await self._ask(
            database,
            lambda target, own, cancel: inspect.describe_table(target, table, own, cancel),
        )

    async def close(self) -> None:
        """Release the engine. Vel closes idle connections automatically."""
        await in_thread(engine.leave, self._token)

    async def _execute(
        self, query: str, database: str, params: Mapping[str, Any] | None, *, native: bool
    ) -> QueryResult:
        _check_texts(query=query)
        if params is not None:
            params = arguments.named("params", params, '{"name": "Ada"} for :name')

        def read(target: DatabaseTarget, own: Any, cancel: Cancellation) -> Table:
            return write.execute_sql(replace(target, native=native), query, params, own, cancel)

        found = await self._ask(database, read)
        if found.error is None or self.read_only:
            return found

        def change(target: DatabaseTarget, own: Any, cancel: Cancellation) -> Changes:
            return write.write_now(replace(target, native=native), query, params, own, cancel)

        try:
            changes = await self._call(database, change)
        except QueryFailed as problem:
            if problem.code == "invalid" and not statement.looks_like_writing(query):
                return found
            if problem.code == "read_only":
                return QueryResult(error=f"{found.error}\n{problem}")
            return QueryResult(error=str(problem))
        returned = changes.returned
        return QueryResult(list(returned.columns), returned.rows, changes.row_count)

    async def _call(self, database: str, work: Callable[..., T]) -> T:
        """Call `work(target, own, cancel)` on a thread and return its result.

        `own` identifies Vel's own database. `cancel` is set if the caller is cancelled. Raises
        `QueryFailed`.
        """
        _check_texts(database=database)
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

    def _target(self, database: str) -> tuple[DatabaseTarget, Any]:
        """Return (the target, the identity of Vel's own database). Blocks. Raises `QueryFailed`."""
        prepare()

        try:
            meant = calls.known_name(list(self.connections), database)
            url = address.checked_url(address.from_here(self.connections[meant]), resolve=True)
        except queries.DatabaseUnavailable as problem:
            raise QueryFailed(str(problem)) from None
        except address.AddressRefused as problem:
            raise QueryFailed(f"{meant}: {problem}") from None
        engine.join(self._token)
        target = DatabaseTarget(
            name=meant,
            url=url,
            statement_seconds=self.query_timeout,
            max_rows=self.row_limit,
            allow_writes=not self.read_only,
        )
        return target, engine.ask(own_database.own_database).result()


def _check_texts(**given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, str):
            raise arguments.wrong(name, "a text", value)


_NAME = "DatabaseMiddleware"
_USUAL = {"query_timeout": 30, "row_limit": 10_000}
"""The default limits of a backend and of the databases of an agent."""


class DatabaseMiddleware(BuiltInMiddleware):
    """The tools of SQL databases: those of a `DatabaseBackend`, or of names with URLs.

    `read_only` (default True) is for names with URLs: a backend has its own value.

    >>> agent = create_deep_agent(middleware=[DatabaseMiddleware({"shop": "sqlite:///shop.sqlite3"})])
    >>> agent.config.databases
    {'shop': 'sqlite:///shop.sqlite3'}
    """

    name = "database"
    leave_out = "no databases"
    adds_up = True

    def __init__(
        self,
        connections: DatabaseBackend | Mapping[str, str],
        read_only: bool | None = None,
    ) -> None:
        if not isinstance(connections, DatabaseBackend):
            self.backend = DatabaseBackend(connections, True if read_only is None else read_only)
            return
        if read_only not in (None, connections.read_only):
            raise SetupError(
                f"read_only={read_only!r} contradicts the DatabaseBackend: leave it out."
            )
        self.backend = connections

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Return `config` with these databases and the limits of the backend.

        Raises `SetupError` if the config has other values.
        """
        backend = self.backend
        own = {name: getattr(backend, name) for name in ("query_timeout", "row_limit")}
        own = {name: value for name, value in own.items() if value != _USUAL[name]}
        limits = {name: own for name in backend.connections if own}
        for name, given in limits.items():
            if config.database_limits.get(name, given) != given:
                raise SetupError(
                    f"database_limits: {name} has other limits in the {_NAME}: leave one out."
                )
        for name, url in backend.connections.items():
            if config.databases.get(name, url) != url:
                raise SetupError(
                    f"databases: {name} has another URL in the {_NAME}: leave one out."
                )
        if config.databases and config.database_read_only != backend.read_only:
            raise SetupError(
                f"database_read_only={config.database_read_only!r} contradicts "
                f"read_only={backend.read_only!r} of the {_NAME}: give both the same."
            )
        return replace(
            config,
            databases={**config.databases, **backend.connections},
            database_read_only=config.database_read_only and backend.read_only,
            database_limits={**config.database_limits, **limits},
        )

    def get_tools(self) -> Sequence[ToolSpec]:
        """Return the tools that an agent with these databases has, as functions on the backend."""
        writes = not self.backend.read_only
        return tuple(
            ToolSpec(
                form.name,
                inputs.QUERY_OR_WRITE if writes and form is inputs.QUERY else form.description,
                getattr(self, form.name),
                form.input_model,
                effect="external" if writes and form is inputs.QUERY else "read",
                timeout=inputs.SECONDS,
            )
            for form in inputs.FORMS
        )

    async def execute_sql(
        self, query: str, database: str = "default", params: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run one SQL statement. params: values for :name in the query."""
        return (await self.backend.execute_as_text(query, database, params)).to_dict()

    async def get_schema(self, database: str = "default") -> dict[str, Any]:
        """Show all tables with columns, types and keys."""
        return (await self.backend.get_schema(database)).to_dict()

    async def list_tables(self, database: str = "default") -> dict[str, Any]:
        """List tables and views."""
        return (await self.backend.get_tables(database)).to_dict()

    async def describe_table(self, table: str, database: str = "default") -> dict[str, Any]:
        """Show a table's columns."""
        return (await self.backend.describe_table(table, database)).to_dict()

    def get_system_prompt_segment(self) -> str:
        names = ", ".join(self.backend.connections)
        return (
            f"## Databases\nYou can query: {names}. Look at `get_schema` first. Filter and "
            "aggregate in SQL."
        )

    async def close(self) -> None:
        """Close the backend."""
        await self.backend.close()


def create_database_tools(backend: DatabaseBackend) -> list[ToolSpec]:
    """Return the tools execute_sql, get_schema, list_tables and describe_table of a backend.

    >>> backend = DatabaseBackend({"shop": "sqlite:////srv/shop.sqlite3"})
    >>> [tool.name for tool in create_database_tools(backend)]
    ['execute_sql', 'get_schema', 'list_tables', 'describe_table']
    """
    if not isinstance(backend, DatabaseBackend):
        raise arguments.wrong("backend", "a DatabaseBackend", backend)
    return list(DatabaseMiddleware(backend).get_tools())
