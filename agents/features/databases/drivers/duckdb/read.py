"""Read-only DuckDB: the file is opened for reading, and nothing outside of it is accessible.

DuckDB is a library: it runs in a helper process, which is killed when a statement takes too long.
Its memory is limited, and it writes no temporary files. Each statement has its own connection.
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
    "enable_external_access": "false",  # no files, directories or addresses outside of the database
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "memory_limit": "1GB",
    "temp_directory": "",
    "max_temp_directory_size": "0KB",
    "threads": "2",
    "lock_configuration": "true",  # last, so that no statement can change these settings
}


def query_duckdb(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
) -> QueryResult:
    """Run one SELECT. Blocks. Raises QueryFailed with the reason if there is no result."""
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
    """Yield a read-only connection. DuckDB's errors become QueryFailed."""
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
        # Errors from Python contain a traceback with the paths of this machine.
        raise QueryFailed(str(problem).partition("Traceback (most recent")[0].rstrip()) from None
    finally:
        connection.close()


def _check_select(connection: Any, text: str) -> None:
    """Check that DuckDB's parser classifies the text as one query.

    Other statements are useless on a read-only database, and some reveal data of the process:
    temporary tables, PRAGMA, CALL, EXPLAIN ANALYZE, transactions.
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
        return import_module("duckdb")  # an optional dependency
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
