"""Differences between SQLite and PostgreSQL in frequent statements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from agents.models import Message, Run, RunClock, RunEvent, Thread, ToolCall

CLOCK = RunClock._meta.db_table
EVENT = RunEvent._meta.db_table
MESSAGE = Message._meta.db_table
RUN = Run._meta.db_table
THREAD = Thread._meta.db_table
TOOL_CALL = ToolCall._meta.db_table


def timestamp() -> Any:
    """Return the current time in the form in which the database stores a DateTimeField."""
    return connection.ops.adapt_datetimefield_value(datetime.now(UTC))


@lru_cache(maxsize=256)
def insert_sql(table: str, columns: tuple[str, ...], rows: int) -> str:
    """Return an INSERT statement for `rows` rows."""
    row = "(" + ", ".join(["%s"] * len(columns)) + ")"
    names = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({names}) VALUES ' + ", ".join([row] * rows)


MAX_PARAMETERS = 900


def insert_rows(table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]) -> None:
    """Insert `rows`, in as few statements as the parameter limit of old SQLites allows."""
    step = max(1, MAX_PARAMETERS // len(columns))
    with connection.cursor() as cursor:
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            cursor.execute(
                insert_sql(table, columns, len(part)), [value for row in part for value in row]
            )
