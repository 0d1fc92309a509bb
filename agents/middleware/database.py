"""Databases: execute_sql, get_schema, list_tables and describe_table, which only read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from agents.databases.errors import QueryFailed
from agents.databases.execute import execute_sql
from agents.databases.own_database import OwnDatabase, own_database
from agents.databases.table import CELL_CHARACTERS, QueryResult
from agents.databases.target import DatabaseTarget
from agents.databases.url import dialect_of
from agents.middleware.base import Middleware, PromptContext, Tool, ToolContext, ToolResult, error
from agents.models import Effect
from agents.selectors.databases import DatabaseUnavailable
from agents.spec import AgentSpec
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError
from sandbox.paths import WORKING_DIR

_INLINE_ROWS = 50
"""More rows than these come as a file, of which the first are shown."""
_FIRST_ROWS = 20
_TABLE_CHARACTERS = 8_000
_SCHEMA_CHARACTERS = 16_000
_NAMED = 30
_SECONDS = 120.0
"""The connection's own limit holds as well, and is usually shorter."""
_DIALECTS = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}

_Ask = Callable[[DatabaseTarget, OwnDatabase, Cancellation], QueryResult]
_DATABASE = Field(default="default", validation_alias=AliasChoices("database", "connection"))


class ExecuteSqlInput(BaseModel):
    query: str = Field(min_length=1, validation_alias=AliasChoices("query", "sql"))
    database: str = _DATABASE
    params: dict[str, Any] | None = None


class DatabaseInput(BaseModel):
    database: str = _DATABASE


class DescribeTableInput(BaseModel):
    table: str = Field(min_length=1, validation_alias=AliasChoices("table", "table_name"))
    database: str = _DATABASE


def _inspection() -> ModuleType:
    # Imported at first use: SQLAlchemy costs 0.2 s, which other agents need not wait for.
    from agents.databases import inspect  # noqa: PLC0415

    return inspect


async def _target(context: ToolContext, name: str) -> DatabaseTarget:
    """The database that a model means: the only one is also the default."""
    names = context.spec.databases
    if name == "default" and name not in names:
        if len(names) > 1:
            raise DatabaseUnavailable(f"Say which database: {', '.join(names)}.")
        name = names[0]
    if name not in names:
        raise DatabaseUnavailable(f"There is no database {name[:100]!r}: {', '.join(names)}.")
    target = (await context.database_targets())[name]
    return replace(target, statement_seconds=min(target.statement_seconds, context.deadline))


async def _answer(
    context: ToolContext,
    database: str,
    ask: _Ask,
    show: Callable[[DatabaseTarget, QueryResult], Any],
) -> ToolResult:
    """Ask on a thread; a cancelled call cancels the statement on the server and waits for it."""
    cancel = Cancellation()
    try:
        target = await _target(context, database)
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
        return execute_sql(target, given.query, given.params, own, cancel)

    def show(target: DatabaseTarget, result: QueryResult) -> dict[str, Any]:
        return _rows(context, result)

    return await _answer(context, given.database, ask, show)


async def run_get_schema(context: ToolContext, given: DatabaseInput) -> ToolResult:
    def ask(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
        return _inspection().get_schema(target, own, cancel)

    return await _answer(context, given.database, ask, _schema)


async def run_list_tables(context: ToolContext, given: DatabaseInput) -> ToolResult:
    def ask(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
        return _inspection().list_tables(target, own, cancel)

    return await _answer(context, given.database, ask, _tables)


async def run_describe_table(context: ToolContext, given: DescribeTableInput) -> ToolResult:
    def ask(target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation) -> QueryResult:
        return _inspection().describe_table(target, given.table, own, cancel)

    def show(target: DatabaseTarget, result: QueryResult) -> str:
        return result.to_markdown_table(max_rows=result.row_count)

    return await _answer(context, given.database, ask, show)


def _rows(context: ToolContext, result: QueryResult) -> dict[str, Any]:
    """The rows as a table; of a long result the first ones, and a file that has them all."""
    content: dict[str, Any] = {
        "success": True,
        "row_count": result.row_count,
        "truncated": result.truncated,
    }
    table = result.to_markdown_table(_INLINE_ROWS)
    is_cut = any(
        isinstance(value, str) and len(value) > CELL_CHARACTERS
        for row in result.values
        for value in row
    )
    notes = list(result.notes)
    if is_cut or result.row_count > _INLINE_ROWS or len(table) > _TABLE_CHARACTERS:
        table = _first_rows(result)
        path = _file_of(context)
        try:
            context.files().write_bytes(path, result.to_csv())
            content["file"] = path
            notes.append(f"All {result.row_count:,} rows that were read are in the file.")
        except SandboxError as problem:
            notes.append(f"The rows could not be kept as a file: {problem}")
    content["table"] = table
    if notes:
        content["note"] = " ".join(notes)
    return content


def _first_rows(result: QueryResult) -> str:
    for rows in (_FIRST_ROWS, 10, 5, 2, 1):
        table = result.to_markdown_table(rows)
        if len(table) <= _TABLE_CHARACTERS:
            return table
    return f"{table[:_TABLE_CHARACTERS]}…"


def _file_of(context: ToolContext) -> str:
    """The same for a call that runs again, another for every other call of the thread."""
    name = hashlib.sha256(f"{context.run_id}:{context.call_id}".encode()).hexdigest()[:12]
    base = WORKING_DIR if context.spec.sandbox else ""
    return f"{base}/query-results/{name}.csv"


def _tables(target: DatabaseTarget, result: QueryResult) -> str:
    lines = [
        _qualified(str(schema), str(table)) + (" (view)" if kind == "VIEW" else "")
        for schema, table, kind in result.values
    ]
    return _lines(target, lines)


def _schema(target: DatabaseTarget, result: QueryResult) -> str:
    """A line for each table, which costs a third of a table with a row for each column."""
    tables: dict[str, list[str]] = {}
    for schema, table, column, kind, nullable, key in result.values:
        parts = [str(column), str(kind), str(key)]
        if nullable == "NO" and "PK" not in str(key):
            parts.append("NOT NULL")
        tables.setdefault(_qualified(str(schema), str(table)), []).append(
            " ".join(part for part in parts if part)
        )
    return _lines(target, [f"{name}({', '.join(of)})" for name, of in tables.items()])


def _qualified(schema: str, table: str) -> str:
    return table if schema in ("main", "public") else f"{schema}.{table}"


def _lines(target: DatabaseTarget, lines: list[str]) -> str:
    text = f"{_DIALECTS[dialect_of(target)]}, {len(lines)} tables\n"
    for number, line in enumerate(lines):
        if len(text) + len(line) > _SCHEMA_CHARACTERS:
            return f"{text}… and {len(lines) - number} more: ask the database's catalogue by SQL."
        text += f"{line}\n"
    return text.rstrip("\n")


class DatabaseMiddleware(Middleware):
    """The four tools, for agents to which a connection is assigned."""

    name = "database"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        if not spec.databases:
            return []
        return [
            Tool(
                "execute_sql",
                "Run one SELECT. params: values for :name in the query.",
                ExecuteSqlInput,
                run_execute_sql,
                Effect.READ,
                time_limit=_SECONDS,
            ),
            Tool(
                "get_schema",
                "Show all tables with columns, types and keys.",
                DatabaseInput,
                run_get_schema,
                Effect.READ,
                time_limit=_SECONDS,
            ),
            Tool(
                "list_tables",
                "List tables and views.",
                DatabaseInput,
                run_list_tables,
                Effect.READ,
                time_limit=_SECONDS,
            ),
            Tool(
                "describe_table",
                "Show a table's columns, with defaults.",
                DescribeTableInput,
                run_describe_table,
                Effect.READ,
                time_limit=_SECONDS,
            ),
        ]

    def prompt(self, context: PromptContext) -> str:
        if "execute_sql" not in context.tool_names:
            return ""
        names = context.spec.databases
        named = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        return (
            f"## Databases\nYou can read: {named}. Look at get_schema first, which names the SQL "
            "dialect. Filter and aggregate in SQL; long results come as a CSV file."
        )
