"""Read-only access to PostgreSQL.

The server enforces three rules. The transaction is read-only and always rolled back. The statement
is the query of a cursor, for which the grammar accepts only SELECT, VALUES, TABLE and WITH. And the
extended protocol accepts one statement only. Functions with effects that are not rolled back are
refused before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg.abc import Loader
from psycopg.adapt import Transformer
from psycopg.pq import Format
from psycopg.pq.abc import PGresult
from psycopg.types.json import Jsonb

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.params import json_text, numbered
from agents.features.databases.drivers.postgresql.functions import check_reading
from agents.features.databases.drivers.postgresql.role import check_role
from agents.features.databases.drivers.postgresql.session import Connection, pool_of, stoppable
from agents.features.databases.drivers.rows import RowsWithin
from agents.features.databases.drivers.table import Cell, QueryResult, size_of
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.values import native_or
from sandbox.cancellation import Cancellation

_FIRST_ROWS, _MOST_ROWS = 50, 1_000
"""Rows of one fetch. Their number depends on the size of the earlier rows."""
_FETCHED_BYTES = 1_000_000

Forms = Sequence[Callable[[bytes], Any]]


def query_postgresql(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
    cancel: Cancellation,
) -> QueryResult:
    """Run one statement. Blocks. Raises QueryFailed, or psycopg's own errors."""
    text, values = numbered(query, params) if params else (query, [])
    given = [Jsonb(value, json_text) if isinstance(value, dict) else value for value in values]
    with read_only_postgresql(target, own, cancel) as connection:
        check_reading(connection, target, text)
        # Without `binary`, a statement without parameters would use the simple protocol, which
        # accepts several statements. The answer to DECLARE has no rows.
        psycopg.RawCursor(connection).execute(
            f"DECLARE vel_rows NO SCROLL CURSOR FOR {text}", given, binary=True
        )
        return _fetch(connection, target)


@contextmanager
def read_only_postgresql(
    target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation
) -> Iterator[Connection]:
    """Yield a clean connection in a read-only transaction, which is rolled back.

    Raises `QueryFailed` if agents may not use the role or the database.
    """
    pool = pool_of(target)
    with (
        pool.connection(target.statement_seconds, cancel) as connection,
        stoppable(connection, target, cancel),
    ):
        connection.execute("BEGIN READ ONLY")
        # The first query of the transaction: after it, the server refuses to make it read-write.
        check_role(connection, target, own)
        yield connection
        connection.execute("ROLLBACK")


def _fetch(connection: Connection, target: DatabaseTarget) -> QueryResult:
    deadline = time.monotonic() + target.statement_seconds
    kept: RowsWithin | None = None
    forms: Forms = ()
    rows, size, wanted = 0, 0, _FIRST_ROWS
    while True:
        left = int((deadline - time.monotonic()) * 1000)
        if left <= 0:
            raise QueryFailed(
                f"The statement took longer than {target.statement_seconds:g} s.", "timeout"
            )
        # Set before each fetch, since the statement can change it.
        cursor = connection.execute(
            f"SET LOCAL statement_timeout = {left}; FETCH FORWARD {wanted} FROM vel_rows"
        )
        cursor.nextset()
        found = cursor.pgresult
        assert found is not None
        if kept is None:
            kept = RowsWithin(target, names_of(found))
            forms = forms_of(connection, target, found)
        for number in range(found.ntuples):
            row = cells_of(found, number, forms)
            size += size_of(row)
            if not kept.add(row):
                return kept.result()
        if found.ntuples < wanted:
            return kept.result()
        rows += found.ntuples
        wanted = max(1, min(_MOST_ROWS, _FETCHED_BYTES * rows // max(size, 1)))


def names_of(found: PGresult) -> list[str]:
    """Return the names of a result's columns."""
    return [_text(found.fname(at)) for at in range(found.nfields)]


def forms_of(connection: Connection, target: DatabaseTarget, found: PGresult) -> Forms:
    """Return for each column the function that reads the server's text in the target's form."""
    types = [found.ftype(at) for at in range(found.nfields)]
    if not target.native:
        return [_TEXT_FORMS.get(kind, _text) for kind in types]
    readers = Transformer(connection)
    return [partial(_native, readers.get_loader(kind, Format.TEXT)) for kind in types]


def cells_of(found: PGresult, row: int, forms: Forms) -> tuple[Any, ...]:
    """Return one row of a result; `forms` are the results of `forms_of`."""
    values = (found.get_value(row, at) for at in range(found.nfields))
    return tuple(
        None if value is None else form(value) for form, value in zip(forms, values, strict=True)
    )


def _native(loader: Loader, value: bytes) -> Any:
    """Return Python's value, or the server's text if it has none, as for the date `infinity`."""
    try:
        return native_or(loader.load(value), lambda _: _text(value))
    except (psycopg.Error, ArithmeticError, ValueError, RecursionError):
        return _text(value)


def _float(value: bytes) -> Cell:
    text = _text(value)
    return text if text in ("NaN", "Infinity", "-Infinity") else float(text)


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


_TEXT_FORMS: dict[int, Callable[[bytes], Cell]] = {
    16: lambda value: value == b"t",
    **dict.fromkeys((20, 21, 23, 26), int),
    **dict.fromkeys((700, 701), _float),
}
"""By type: boolean, integers, floats."""
