"""The schema of a DuckDB database, from its own catalogue."""

from __future__ import annotations

from typing import Any

from agents.features.databases.drivers.duckdb.read import read_only_duckdb
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget

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
