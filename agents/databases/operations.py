"""The operations of a helper process, on one target, with the driver that it needs.

A driver is imported when it is used: a process serves one kind of database.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agents.databases.changes import Changes
from agents.databases.own_database import OwnDatabase
from agents.databases.table import QueryResult
from agents.databases.target import DatabaseTarget
from agents.databases.url import dialect_of

if TYPE_CHECKING:
    from sandbox.cancellation import Cancellation

LIBRARIES = ("sqlite", "duckdb")
"""Databases that run within the helper, which is killed to end a statement."""

Params = Mapping[str, Any] | None


def load(dialect: str) -> None:
    """Import the driver, so that the first statement does not wait for it."""
    if dialect == "sqlite":
        from agents.databases import write_sqlite  # noqa: F401
    elif dialect == "duckdb":
        from agents.databases import readonly_duckdb

        readonly_duckdb.load()
    elif dialect == "mysql":
        from agents.databases import readonly_mysql  # noqa: F401
    else:
        from agents.databases import write_postgresql  # noqa: F401


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
        from agents.databases.readonly_sqlite import query_sqlite

        return query_sqlite(target, text, params, own)
    if dialect == "duckdb":
        from agents.databases.readonly_duckdb import query_duckdb

        return query_duckdb(target, text, params, own)
    assert cancel is not None
    if dialect == "mysql":
        from agents.databases.readonly_mysql import query_mysql

        return query_mysql(target, text, params, cancel)
    from agents.databases.postgresql_errors import told_by_postgresql
    from agents.databases.readonly_postgresql import query_postgresql

    with told_by_postgresql(target):
        return query_postgresql(target, text, params, own, cancel)


def describe(
    target: DatabaseTarget, what: str, table: str, own: OwnDatabase, cancel: Cancellation | None
) -> QueryResult:
    """`list_tables`, `get_schema` or `describe_table`. Raises QueryFailed."""
    dialect = dialect_of(target)
    if dialect == "duckdb":
        from agents.databases import inspect_duckdb

        return inspect_duckdb.OPERATIONS[what](target, table, own)
    if dialect == "mysql":
        from agents.databases import inspect_mysql

        assert cancel is not None
        return inspect_mysql.OPERATIONS[what](target, table, cancel)
    from agents.databases import inspect_schema

    return inspect_schema.OPERATIONS[what](target, table, own, cancel)


def write(
    target: DatabaseTarget, text: str, params: Params, own: OwnDatabase,
    cancel: Cancellation | None, keep: Callable[[Changes], bool] | None,
) -> Changes:  # fmt: skip
    """Run one statement that writes; with None for `keep` it is a trial. Raises QueryFailed."""
    if dialect_of(target) == "sqlite":
        from agents.databases.write_sqlite import try_sqlite, write_sqlite

        if keep is None:
            return try_sqlite(target, text, params or {}, own)
        return write_sqlite(target, text, params or {}, own, keep)
    from agents.databases.postgresql_errors import told_by_postgresql
    from agents.databases.write_postgresql import write_postgresql

    assert cancel is not None
    with told_by_postgresql(target):
        return write_postgresql(target, text, params, own, cancel, keep or (lambda _: False))
