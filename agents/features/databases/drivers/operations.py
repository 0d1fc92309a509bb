"""The operations of a helper process, on one target, with the driver that it needs.

A driver is imported when it is used: a process serves one kind of database.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.url import dialect_of

if TYPE_CHECKING:
    from sandbox.cancellation import Cancellation

LIBRARIES = ("sqlite", "duckdb")
"""Databases that run within the helper, which is killed to end a statement."""

Params = Mapping[str, Any] | None


def load(dialect: str) -> None:
    """Import the driver, so that the first statement does not wait for it."""
    if dialect == "sqlite":
        from agents.features.databases.drivers.sqlite import write as write_sqlite  # noqa: F401
    elif dialect == "duckdb":
        from agents.features.databases.drivers.duckdb import read as readonly_duckdb

        readonly_duckdb.load()
    elif dialect == "mysql":
        from agents.features.databases.drivers.mysql import read as readonly_mysql  # noqa: F401
    else:
        from agents.features.databases.drivers.postgresql import write as write_postgresql  # noqa: F401


def query(
    target: DatabaseTarget,
    text: str,
    params: Params,
    own: OwnDatabase,
    cancel: Cancellation | None,
) -> QueryResult:
    """Run one statement that reads. Raises QueryFailed. Only servers need `cancel`."""
    dialect = dialect_of(target)
    if dialect == "sqlite":
        from agents.features.databases.drivers.sqlite.read import query_sqlite

        return query_sqlite(target, text, params, own)
    if dialect == "duckdb":
        from agents.features.databases.drivers.duckdb.read import query_duckdb

        return query_duckdb(target, text, params, own)
    assert cancel is not None
    if dialect == "mysql":
        from agents.features.databases.drivers.mysql.read import query_mysql

        return query_mysql(target, text, params, cancel)
    from agents.features.databases.drivers.postgresql.errors import told_by_postgresql
    from agents.features.databases.drivers.postgresql.read import query_postgresql

    with told_by_postgresql(target):
        return query_postgresql(target, text, params, own, cancel)


def describe(
    target: DatabaseTarget, what: str, table: str, own: OwnDatabase, cancel: Cancellation | None
) -> QueryResult:
    """`list_tables`, `get_schema` or `describe_table`. Raises QueryFailed."""
    dialect = dialect_of(target)
    if dialect == "duckdb":
        from agents.features.databases.drivers.duckdb import inspect as inspect_duckdb

        return inspect_duckdb.OPERATIONS[what](target, table, own)
    if dialect == "mysql":
        from agents.features.databases.drivers.mysql import inspect as inspect_mysql

        assert cancel is not None
        return inspect_mysql.OPERATIONS[what](target, table, cancel)
    from agents.features.databases.drivers import reflection as inspect_schema

    return inspect_schema.OPERATIONS[what](target, table, own, cancel)


def write(
    target: DatabaseTarget, text: str, params: Params, own: OwnDatabase,
    cancel: Cancellation | None, keep: Callable[[Changes], bool] | None,
) -> Changes:  # fmt: skip
    """Run one statement that writes; with None for `keep` it is a trial. Raises QueryFailed."""
    if dialect_of(target) == "sqlite":
        from agents.features.databases.drivers.sqlite.write import try_sqlite, write_sqlite

        if keep is None:
            return try_sqlite(target, text, params or {}, own)
        return write_sqlite(target, text, params or {}, own, keep)
    from agents.features.databases.drivers.postgresql.errors import told_by_postgresql
    from agents.features.databases.drivers.postgresql.write import write_postgresql

    assert cancel is not None
    with told_by_postgresql(target):
        return write_postgresql(target, text, params, own, cancel, keep or (lambda _: False))
