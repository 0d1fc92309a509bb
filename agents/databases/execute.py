"""The door of this package: a statement, or a question about the schema, on one target."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import psycopg

from agents.databases.errors import QueryFailed
from agents.databases.own_database import OwnDatabase
from agents.databases.readonly_duckdb import query_duckdb
from agents.databases.readonly_mysql import query_mysql
from agents.databases.readonly_postgresql import query_postgresql
from agents.databases.readonly_sqlite import query_sqlite
from agents.databases.table import QueryResult
from agents.databases.target import DatabaseTarget
from agents.databases.url import dialect_of, without_secrets
from sandbox.cancellation import Cancellation

T = TypeVar("T")


def execute_sql(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
) -> QueryResult:
    """Run one statement that reads. Blocks; QueryFailed says why there is no result.

    `params` are values for `:name` in the statement. Lists are arrays for PostgreSQL, lists for
    DuckDB, and JSON text for SQLite and MySQL, where `json_each(:name)` and `JSON_TABLE` read them.
    """
    refuse_nul(query)
    if dialect_of(target) == "postgresql":
        return told(target, lambda: query_postgresql(target, query, params, own, cancel))
    if dialect_of(target) == "duckdb":
        return told(target, lambda: query_duckdb(target, query, params, own, cancel))
    plain = with_json_text(params)
    if dialect_of(target) == "mysql":
        return told(target, lambda: query_mysql(target, query, plain, cancel))
    return told(target, lambda: query_sqlite(target, query, plain, own, cancel))


def refuse_nul(query: str) -> None:
    """Drivers would cut the statement there."""
    if "\0" in query:
        raise QueryFailed("A statement has no NUL characters.", "invalid")


def with_json_text(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values for databases without lists and objects, which are JSON text there."""
    return {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in (params or {}).items()
    }


def told(target: DatabaseTarget, work: Callable[[], T]) -> T:
    """Do it; what a database has to say becomes a QueryFailed without the URL's secrets."""
    try:
        return work()
    except QueryFailed as problem:
        problem.args = (without_secrets(str(problem), target),)
        raise problem from None
    except (psycopg.Error, sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as problem:
        raise _failed(target, problem) from None


def _failed(target: DatabaseTarget, problem: BaseException) -> QueryFailed:
    text, code = str(problem), "database"
    if isinstance(problem, psycopg.errors.QueryCanceled) or text == "interrupted":
        text, code = (
            f"The statement was stopped: {text} ({target.statement_seconds:g} s at most).",
            "timeout",
        )
    elif text == "not authorized":
        text += ": only one SELECT, VALUES or WITH … SELECT is possible, with SQLite's functions."
    elif isinstance(problem, psycopg.Error) and problem.diag.message_primary:
        said = problem.diag
        text = said.message_primary or ""
        text += f"\nDETAIL: {said.message_detail}" if said.message_detail else ""
        text += f"\nHINT: {said.message_hint}" if said.message_hint else ""
        if said.sqlstate == "42601" and text.startswith("syntax error"):
            text += "\nOne SELECT, VALUES, TABLE or WITH … SELECT is possible, nothing else."
    if code == "database" and _is_away(problem):
        code = "connection"
    return QueryFailed(without_secrets(text, target), code)


def _is_away(problem: BaseException) -> bool:
    """Whether the server could not be reached, went away, or has no connection to spare."""
    if not isinstance(problem, psycopg.OperationalError):
        return False
    state = problem.sqlstate or "08"
    return state[:2] in ("08", "53") or state in ("57P01", "57P02", "57P03")
