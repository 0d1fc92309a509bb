"""Distinguish a database server that cannot be reached from an error of the program."""

from __future__ import annotations

from typing import Any

from django.db import InterfaceError, OperationalError

_AWAY = frozenset({"57P01", "57P02", "57P03", "53300", "25P03", "57P05"})
"""PostgreSQL stops, crashed, starts, has too many clients, or closed an idle connection."""


def is_away(error: BaseException | None) -> bool:
    """Return whether PostgreSQL cannot be reached, or has closed the connection.

    The answer for SQLite is always False: its `OperationalError` can be an error of the program.
    """
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    cause: Any = error.__cause__
    if not hasattr(cause, "sqlstate"):
        return False
    if isinstance(error, InterfaceError):
        return "connection is closed" in str(error)
    state: str | None = cause.sqlstate  # None if the server did not answer
    return state is None or state in _AWAY or state.startswith("08")
