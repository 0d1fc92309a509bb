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
from agents.features.databases.drivers.sqlite.read import path_of
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.values import form_of

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
        form = form_of(target)
        while rows := cursor.fetchmany(_ROWS):
            for row in rows:
                if not kept.add(tuple(map(form, row))):
                    return kept.result()
        return kept.result()


@contextmanager
def read_only_duckdb(target: DatabaseTarget, own: OwnDatabase) -> Iterator[Any]:
    """Yield a read-only connection.

    Raises:
        QueryFailed: The driver is missing, DuckDB raised an error (also in the `with` block), or
            the target has hidden columns, which DuckDB cannot hide.
    """
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
        raise QueryFailed("Expected exactly one SELECT, VALUES, FROM or WITH … SELECT.")


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


_TABLES = """
SELECT table_schema, table_name, table_type FROM information_schema.tables
WHERE table_catalog = current_database() AND table_schema <> 'information_schema'
ORDER BY table_schema, table_type, table_name
"""
_COLUMNS = """
SELECT c.schema_name, c.table_name, c.column_name, c.data_type,
  CASE WHEN c.is_nullable THEN 'YES' ELSE 'NO' END,
  coalesce((SELECT string_agg(CASE k.constraint_type WHEN 'PRIMARY KEY' THEN 'PK'
      ELSE '→ ' || k.referenced_table || '.' || k.referenced_column_names[
        list_position(k.constraint_column_names, c.column_name)] END, ', '
      ORDER BY k.constraint_type DESC)
    FROM duckdb_constraints() k
    WHERE k.table_oid = c.table_oid AND k.schema_oid = c.schema_oid
      AND k.database_oid = c.database_oid
      AND k.constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
      AND list_contains(k.constraint_column_names, c.column_name)), ''),
  c.column_default
FROM duckdb_columns() c
WHERE c.database_name = current_database() AND NOT c.internal
  AND ($1 = '' OR c.table_name = $1 OR c.schema_name || '.' || c.table_name = $1)
ORDER BY c.schema_name <> 'main', c.schema_name, c.table_name, c.column_index
"""


def list_tables(target: DatabaseTarget, _table: str, own: OwnDatabase) -> QueryResult:
    """Return tables as `agents.features.databases.drivers.inspect.list_tables`."""
    with read_only_duckdb(target, own) as connection:
        rows = connection.execute(_TABLES).fetchall()
    return QueryResult(("table_schema", "table_name", "table_type"), rows)


def get_schema(target: DatabaseTarget, _table: str, own: OwnDatabase) -> QueryResult:
    """Return columns as `agents.features.databases.drivers.inspect.get_schema`."""
    names = ("table_schema", "table_name", "column_name", "data_type", "is_nullable", "key")
    return QueryResult(names, [row[:6] for row in _columns(target, "", own)])


def describe_table(target: DatabaseTarget, table: str, own: OwnDatabase) -> QueryResult:
    """Return columns as `agents.features.databases.drivers.inspect.describe_table`."""
    rows = _columns(target, table, own)
    if not rows:
        raise QueryFailed(
            f"There is no table {table[:100]!r}: list_tables shows them.", "not_found"
        )
    first = rows[0][:2]
    names = ("column_name", "data_type", "is_nullable", "column_default", "key")
    return QueryResult(
        names, [(row[2], row[3], row[4], row[6], row[5]) for row in rows if row[:2] == first]
    )


def _columns(target: DatabaseTarget, table: str, own: OwnDatabase) -> list[tuple[Any, ...]]:
    with read_only_duckdb(target, own) as connection:
        return list(connection.execute(_COLUMNS, [table]).fetchall())


OPERATIONS = {
    "list_tables": list_tables,
    "get_schema": get_schema,
    "describe_table": describe_table,
}
