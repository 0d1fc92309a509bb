"""The schema of a MySQL or MariaDB database, from its own catalogue.

SQLAlchemy would use SHOW CREATE TABLE. Servers refuse it to accounts that may read only some
columns, and for views to accounts without SHOW VIEW.
"""

from __future__ import annotations

from typing import Any

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.mysql.read import SYSTEM_SCHEMAS, read_only_mysql
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget, is_hidden
from sandbox.cancellation import Cancellation

# MariaDB has expressions as defaults: the word NULL means no default, texts are quoted. Only
# columns with a SELECT privilege: the catalogue also has those that may only be written.
_COLUMNS = f"""
SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE,
  IF(VERSION() LIKE '%MariaDB%' AND BINARY c.COLUMN_DEFAULT = 'NULL', NULL, c.COLUMN_DEFAULT),
  c.COLUMN_KEY, t.TABLE_TYPE
FROM information_schema.COLUMNS c
JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)
WHERE c.TABLE_SCHEMA NOT IN ({SYSTEM_SCHEMAS}) AND FIND_IN_SET('select', c.PRIVILEGES)
  AND t.TABLE_TYPE <> 'SEQUENCE'
ORDER BY c.TABLE_SCHEMA <> DATABASE(), c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION
"""  # noqa: S608  # a constant
_FOREIGN = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME,
  REFERENCED_COLUMN_NAME
FROM information_schema.KEY_COLUMN_USAGE
WHERE REFERENCED_TABLE_NAME IS NOT NULL AND TABLE_SCHEMA NOT IN ({SYSTEM_SCHEMAS})
ORDER BY CONSTRAINT_NAME
"""  # noqa: S608  # a constant


def list_tables(target: DatabaseTarget, _table: str, cancel: Cancellation) -> QueryResult:
    """Return tables as `agents.features.databases.drivers.inspect.list_tables`."""
    found = dict.fromkeys((row[0], row[1], row[7]) for row in _columns(target, cancel))
    return QueryResult(("table_schema", "table_name", "table_type"), list(found))


def get_schema(target: DatabaseTarget, _table: str, cancel: Cancellation) -> QueryResult:
    """Return columns as `agents.features.databases.drivers.inspect.get_schema`."""
    names = ("table_schema", "table_name", "column_name", "data_type", "is_nullable", "key")
    rows = [(*row[:5], row[6]) for row in _columns(target, cancel)]
    return QueryResult(names, rows)


def describe_table(target: DatabaseTarget, table: str, cancel: Cancellation) -> QueryResult:
    """Return columns as `agents.features.databases.drivers.inspect.describe_table`."""
    rows = [row for row in _columns(target, cancel) if table in (row[1], f"{row[0]}.{row[1]}")]
    if not rows:
        raise QueryFailed(
            f"There is no table {table[:100]!r}: list_tables shows them.", "not_found"
        )
    first = rows[0][:2]
    names = ("column_name", "data_type", "is_nullable", "column_default", "key")
    return QueryResult(names, [row[2:7] for row in rows if row[:2] == first])


def _columns(target: DatabaseTarget, cancel: Cancellation) -> list[tuple[Any, ...]]:
    """Return schema, table, column, type, nullable, default, key, BASE TABLE or VIEW."""
    with read_only_mysql(target, cancel) as session:
        columns, foreign = session.execute(_COLUMNS), session.execute(_FOREIGN)
    ends: dict[tuple[str, ...], list[str]] = {}
    for schema, table, column, *(other_schema, other, end) in foreign:
        place = other if other_schema == schema else f"{other_schema}.{other}"
        ends.setdefault((schema, table, column), []).append(f"→ {place}.{end}")
    rows = []
    for schema, table, column, kind, nullable, default, key, of in columns:
        if is_hidden(target, schema, table, column):
            continue
        keys = ["PK"] if key == "PRI" else []
        keys += ends.get((schema, table, column), [])
        rows.append(
            (
                schema, table, column, kind, nullable, default, ", ".join(keys),
                "VIEW" if "VIEW" in of else "BASE TABLE",
            )
        )  # fmt: skip
    return rows


OPERATIONS = {
    "list_tables": list_tables,
    "get_schema": get_schema,
    "describe_table": describe_table,
}
