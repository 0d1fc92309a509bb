"""DuckDB that can only be read: the file is opened so, with nothing outside of it in reach.

DuckDB is a library: it runs in a helper process, which is killed when a statement takes too long.
Its memory is bounded, and it spills nothing to disk. Each statement has a connection of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.params import numbered
from agents.features.databases.drivers.rows import RowsWithin
from agents.features.databases.drivers.sqlite.read import cell, path_of
from agents.features.databases.drivers.table import Cell, QueryResult
from agents.features.databases.drivers.target import DatabaseTarget

_ROWS = 200
_CONFIGURATION = {
    "enable_external_access": "false",  # no file, directory or address but the database's own
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "memory_limit": "1GB",
    "temp_directory": "",
    "max_temp_directory_size": "0KB",
    "threads": "2",
    "lock_configuration": "true",  # the last word: no statement changes any of it
}


def query_duckdb(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
) -> QueryResult:
    """Run one SELECT. Blocks; QueryFailed says why there is no result."""
    text, values = numbered(query, params) if params else (query, [])
    with read_only_duckdb(target, own) as connection:
        _check_select(connection, text)
        cursor = connection.execute(text, values)
        if cursor.description is None:
            return QueryResult()
        kept = RowsWithin(target, [str(column[0]) for column in cursor.description])
        while rows := cursor.fetchmany(_ROWS):
            for row in rows:
                if not kept.add(tuple(_cell(value) for value in row)):
                    return kept.result()
        return kept.result()


@contextmanager
def read_only_duckdb(target: DatabaseTarget, own: OwnDatabase) -> Iterator[Any]:
    """A connection on which only reading is possible; DuckDB's errors become QueryFailed."""
    duckdb = _duckdb()
    if target.hidden_columns:
        raise QueryFailed(
            f"{target.name} cannot be queried: DuckDB has no way to hide columns. Use a copy of "
            "the database without them.",
            "configuration",
        )
    path = path_of(target, own)
    try:
        connection = duckdb.connect(path, read_only=True, config=dict(_CONFIGURATION))
    except duckdb.Error as problem:
        raise QueryFailed(f"{target.name} cannot be opened: {_first_line(problem)}") from None
    try:
        yield connection
    except (duckdb.Error, OverflowError, ValueError) as problem:
        # A failure in Python has a traceback with the paths of this machine.
        raise QueryFailed(str(problem).partition("Traceback (most recent")[0].rstrip()) from None
    finally:
        connection.close()


def _check_select(connection: Any, text: str) -> None:
    """One statement, which DuckDB's parser takes for a query.

    What else it runs on a database that can only be read is no use, and some of it tells of the
    process: temporary tables, PRAGMA, CALL, EXPLAIN ANALYZE, transactions.
    """
    duckdb = _duckdb()
    statements = connection.extract_statements(text)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise QueryFailed("One SELECT, VALUES, FROM or WITH … SELECT is possible, nothing else.")


def load() -> None:
    """Import the driver, if it is installed."""
    with suppress(QueryFailed):
        _duckdb()


def _duckdb() -> ModuleType:
    try:
        return import_module("duckdb")  # an extra
    except ImportError:
        raise QueryFailed(
            "DuckDB's driver is not installed: pip install 'vel[duckdb]'.", "configuration"
        ) from None


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, str | int | float | bytes):
        return cell(value)
    return str(value)
