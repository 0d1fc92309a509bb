"""What a database would do for each statement of a piece of work: which tables it reads whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

Statement = tuple[str, Any]

PARTIAL_INDEXES = {"run_uncounted"}
"""They hold few rows, whatever the table holds: to read all of one is not to read the table."""

_SCAN = re.compile(r'SCAN "?(\w+)"?')
_ALIASES = re.compile(r'"?(\w+)"? (?:AS )?"?([A-Za-z]\w*)"?')


@contextmanager
def statements() -> Iterator[list[Statement]]:
    """All that is executed meanwhile, on every thread, once each by its text."""
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
    """Tables of which the plan of `statement` reads every row, however few it is to find.

    Reading them in the order of an index until a LIMIT is reached is not that.
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
            # With a handful of rows reading all is best; what is asked is whether it must.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {sql}", params)
            return "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        return "\n".join(row[3] for row in cursor.fetchall())


def _table_of(name: str, sql: str) -> str:
    """SQLite's plans name a table by its alias."""
    for table, alias in _ALIASES.findall(sql):
        if alias == name and table.startswith(("agents_", "memory_", "skills_", "django_q_")):
            return str(table)
    return name
