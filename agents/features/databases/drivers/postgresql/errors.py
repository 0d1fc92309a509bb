"""Errors of a PostgreSQL server, with messages that may be shown to the agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget

_READABLE = "Expected exactly one SELECT, VALUES, TABLE or WITH … SELECT."
_WRITABLE = (
    "Expected exactly one SELECT, INSERT, UPDATE, DELETE or MERGE. Create and alter tables with a "
    "database client."
)
_CONFLICTS = ("40001", "40P01")
"""SQLSTATE of transactions that conflicted with another one. The server has rolled them back."""


@contextmanager
def told_by_postgresql(target: DatabaseTarget) -> Iterator[None]:
    """Turn errors of the server or psycopg into QueryFailed."""
    try:
        yield
    except (psycopg.Error, OverflowError, ValueError) as problem:
        raise _failed(target, problem) from None


def _failed(target: DatabaseTarget, problem: Exception) -> QueryFailed:
    text = str(problem)
    if isinstance(problem, psycopg.errors.QueryCanceled):
        return QueryFailed(
            f"The statement was stopped: {text} ({target.statement_seconds:g} s at most).",
            "timeout",
        )
    if not isinstance(problem, psycopg.Error):
        return QueryFailed(text)
    said = problem.diag
    if said.message_primary:
        text = said.message_primary
        text += f"\nDETAIL: {said.message_detail}" if said.message_detail else ""
        text += f"\nHINT: {said.message_hint}" if said.message_hint else ""
        if said.sqlstate == "42601" and text.startswith("syntax error"):
            text += f"\n{_WRITABLE if target.allow_writes else _READABLE}"
        if said.sqlstate in _CONFLICTS:
            return QueryFailed(text, "conflict")
    elif "out of memory" in text:
        # libpq could not allocate memory for a value.
        return QueryFailed("A value is too long to be read: select parts of long values.", "memory")
    return QueryFailed(text, "connection" if _is_away(problem) else "database")


def _is_away(problem: psycopg.Error) -> bool:
    """Return whether the server is unreachable, has closed the connection or has none free."""
    if not isinstance(problem, psycopg.OperationalError):
        return False
    state = problem.sqlstate or "08"
    return state[:2] in ("08", "53") or state in ("57P01", "57P02", "57P03")
