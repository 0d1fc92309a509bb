"""The schema of a SQLite or PostgreSQL database, read by SQLAlchemy in a helper process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Inspector, StaticPool, create_engine
from sqlalchemy import inspect as inspector_of
from sqlalchemy.engine.reflection import ObjectKind, ObjectScope
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.types import NullType, TypeEngine

from agents.features.databases.drivers.address import dialect_of
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.sqlite.read import read_only_sqlite, told_by_sqlite
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget, is_hidden
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # psycopg takes 50 ms, which SQLite does not need.
    from agents.features.databases.drivers.postgresql import errors, read


if TYPE_CHECKING:
    from sandbox.cancellation import Cancellation

_READABLE = """
SELECT n.nspname::text, c.relname::text, a.attname::text
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
  AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
"""


class _Schema:
    """An inspector and the visible columns: None for all of them."""

    def __init__(
        self, target: DatabaseTarget, inspector: Inspector, schemas: list[str],
        readable: set[tuple[str, str, str]] | None,
    ) -> None:  # fmt: skip
        self._target = target
        self.inspector = inspector
        self.schemas = schemas
        self._readable = readable
        self._tables = None if readable is None else {found[:2] for found in readable}

    def shows_table(self, schema: str, table: str) -> bool:
        return self._tables is None or (schema, table) in self._tables

    def shows(self, schema: str, table: str, column: str) -> bool:
        if is_hidden(self._target, schema, table, column):
            return False
        return self._readable is None or (schema, table, column) in self._readable


@contextmanager
def _schema(
    target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation | None
) -> Iterator[_Schema]:
    if dialect_of(target) == "postgresql":
        assert cancel is not None
        with read.read_only_postgresql(target, own, cancel) as connection:
            readable = {
                (str(row[0]), str(row[1]), str(row[2]))
                for row in connection.execute(_READABLE).fetchall()
            }
            schemas = sorted({schema for schema, _, _ in readable})
            with _inspector("postgresql+psycopg://", connection) as inspector:
                yield _Schema(target, inspector, schemas, readable)
    else:
        with (
            read_only_sqlite(target, own) as (reading, _),
            _inspector("sqlite://", reading) as inspector,
        ):
            yield _Schema(target, inspector, ["main"], None)


@contextmanager
def _inspector(url: str, connection: Any) -> Iterator[Inspector]:
    """Yield SQLAlchemy's inspector on a connection that the caller closes."""
    engine = create_engine(
        url, creator=lambda: connection, poolclass=StaticPool, pool_reset_on_return=None
    )
    with engine.connect() as wrapped:
        yield inspector_of(wrapped)


def _told(target: DatabaseTarget, work: Callable[[], QueryResult]) -> QueryResult:
    if dialect_of(target) == "postgresql":
        told = errors.told_by_postgresql(target)
    else:
        told = told_by_sqlite()
    with told:
        try:
            return work()
        except DBAPIError as problem:
            if isinstance(problem.orig, Exception):
                raise problem.orig from None
            raise
        except SQLAlchemyError as problem:
            # For example a view on a removed table, or a removed type.
            raise QueryFailed(f"The schema cannot be read: {problem}") from None


def list_tables(
    target: DatabaseTarget, _table: str, own: OwnDatabase, cancel: Cancellation | None
) -> QueryResult:
    """Return tables as `agents.features.databases.drivers.inspect.list_tables`."""

    def work() -> QueryResult:
        with _schema(target, own, cancel) as known:
            rows = []
            for schema in known.schemas:
                found = [(name, "BASE TABLE") for name in known.inspector.get_table_names(schema)]
                views = set(known.inspector.get_view_names(schema))
                if known.inspector.dialect.name == "postgresql":
                    views |= set(known.inspector.get_materialized_view_names(schema))
                found += [(name, "VIEW") for name in views]
                rows += [
                    (schema, name, kind)
                    for name, kind in sorted(found)
                    if known.shows_table(schema, name)
                ]
            return QueryResult(("table_schema", "table_name", "table_type"), rows)

    return _told(target, work)


def get_schema(
    target: DatabaseTarget, _table: str, own: OwnDatabase, cancel: Cancellation | None
) -> QueryResult:
    """Return columns as `agents.features.databases.drivers.inspect.get_schema`."""

    def work() -> QueryResult:
        with _schema(target, own, cancel) as known:
            rows = [row[:6] for schema in known.schemas for row in _columns(known, schema, None)]
            names = ("table_schema", "table_name", "column_name", "data_type", "is_nullable", "key")
            return QueryResult(names, rows)

    return _told(target, work)


def describe_table(
    target: DatabaseTarget, table: str, own: OwnDatabase, cancel: Cancellation | None
) -> QueryResult:
    """Return columns as `agents.features.databases.drivers.inspect.describe_table`."""

    def work() -> QueryResult:
        with _schema(target, own, cancel) as known:
            for schema in sorted(known.schemas, key=lambda name: name not in ("main", "public")):
                for name in (table, table.removeprefix(f"{schema}.")):
                    rows = _columns(known, schema, name)
                    if rows:
                        names = ("column_name", "data_type", "is_nullable", "column_default", "key")
                        return QueryResult(
                            names, [(row[2], row[3], row[4], row[6], row[5]) for row in rows]
                        )
            raise QueryFailed(
                f"There is no table {table[:100]!r}: list_tables shows them.", "not_found"
            )

    return _told(target, work)


def _columns(known: _Schema, schema: str, only: str | None) -> list[tuple[Any, ...]]:
    asked: dict[str, Any] = {
        "schema": schema, "kind": ObjectKind.ANY, "scope": ObjectScope.DEFAULT,
        "filter_names": None if only is None else [only],
    }  # fmt: skip
    keys = _keys(known, schema, asked)
    rows = []
    for (_, table), columns in sorted(known.inspector.get_multi_columns(**asked).items()):
        for column in columns:
            name = column["name"]
            if known.shows(schema, table, name):
                rows.append(
                    (
                        schema, table, name, _type_name(known, column["type"]),
                        "YES" if column["nullable"] else "NO",
                        ", ".join(keys.get((table, name), ())), column["default"],
                    )
                )  # fmt: skip
    return rows


def _type_name(known: _Schema, kind: TypeEngine[Any]) -> str:
    """Return the type in the database's spelling; empty for a SQLite column without a type."""
    return "" if isinstance(kind, NullType) else kind.compile(dialect=known.inspector.dialect)


def _keys(known: _Schema, schema: str, asked: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    keys: dict[tuple[str, str], list[str]] = {}
    for (_, table), primary in known.inspector.get_multi_pk_constraint(**asked).items():
        for name in primary["constrained_columns"] if primary else ():
            keys.setdefault((table, name), []).append("PK")
    for (_, table), foreign in known.inspector.get_multi_foreign_keys(**asked).items():
        for constraint in foreign:
            other = constraint["referred_table"]
            if constraint.get("referred_schema") not in (None, schema):
                other = f"{constraint['referred_schema']}.{other}"
            ends = zip(
                constraint["constrained_columns"], constraint["referred_columns"], strict=False
            )
            for name, end in ends:
                keys.setdefault((table, name), []).append(f"→ {other}.{end}")
    return keys


OPERATIONS = {
    "list_tables": list_tables,
    "get_schema": get_schema,
    "describe_table": describe_table,
}
