"""The query plans of all statements of an action: the tables that the database reads whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

Statement = tuple[str, Any]

PARTIAL_INDEXES = {"run_uncounted"}
"""Indexes that have few rows, however large the table is. A scan of one is not a table scan."""

_SCAN = re.compile(r'SCAN "?(\w+)"?')
_ALIASES = re.compile(r'"?(\w+)"? (?:AS )?"?([A-Za-z]\w*)"?')


@contextmanager
def statements() -> Iterator[list[Statement]]:
    """Collect the different statements of the block, on every thread."""
    seen: dict[str, Any] = {}
    found: list[Statement] = []
    execute = CursorWrapper.execute

    def note(cursor: CursorWrapper, sql: Any, params: Any = None) -> Any:
        if isinstance(sql, str):
            seen.setdefault(sql, params)
        return execute(cursor, sql, params)

    CursorWrapper.execute = note  # type: ignore[method-assign, assignment]
    try:
        yield found
    finally:
        CursorWrapper.execute = execute  # type: ignore[method-assign]
        found += seen.items()


def read_whole(statement: Statement) -> set[str]:
    """Return the tables of which the plan of `statement` reads every row.

    A read in the order of an index until a LIMIT is reached does not count.
    """
    sql, params = statement
    if not re.match(r"\s*(SELECT|UPDATE|DELETE|WITH)\b", sql):
        return set()
    plan = _plan(sql, params)
    if connection.vendor == "postgresql":
        return set(re.findall(r"Seq Scan on (\w+)", plan))
    stops = " LIMIT " in sql and "USE TEMP B-TREE FOR ORDER BY" not in plan
    found = set()
    for line in plan.splitlines():
        scanned = _SCAN.search(line)
        if scanned is None or (stops and "USING" in line) or line.split()[-1] in PARTIAL_INDEXES:
            continue
        found.add(_table_of(scanned[1], sql))
    return found


def _plan(sql: str, params: Any) -> str:
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # For a few rows a full scan is best. The check is whether it can be avoided.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {sql}", params)
            return "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        return "\n".join(row[3] for row in cursor.fetchall())


def _table_of(name: str, sql: str) -> str:
    """Return the table of an alias in one of SQLite's plans."""
    for table, alias in _ALIASES.findall(sql):
        if alias == name and table.startswith(("agents_", "memory_", "skills_", "django_q_")):
            return str(table)
    return name
