"""Tell a database server that is away from an error of the program."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

_AWAY = frozenset({"57P01", "57P02", "57P03", "53300", "25P03", "57P05"})
"""PostgreSQL stops, crashed, starts, has too many clients, or has closed an idle connection."""


def is_away(error: BaseException | None) -> bool:
    """Whether `error` says that PostgreSQL cannot be reached, or has closed the connection.

    Never true for SQLite, whose `OperationalError` may also be an error of the program.
    """
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    if not hasattr(error.__cause__, "sqlstate"):
        return False
    if isinstance(error, InterfaceError):
        return "connection is closed" in str(error)
    state: str | None = error.__cause__.sqlstate  # None: it could not even answer
    return state is None or state in _AWAY or state.startswith("08")
