"""The operations of a helper process, on one target, with the driver that it needs.

A driver is imported when it is used: a process serves one kind of database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from agents.features.databases.drivers.address import dialect_of
from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Importing a driver takes 30 to 200 ms, and a process serves one kind of database.
    from agents.features.databases.drivers import reflection
    from agents.features.databases.drivers.duckdb import read
    from agents.features.databases.drivers.duckdb import read as read_duckdb
    from agents.features.databases.drivers.mysql import inspect as inspect_mysql
    from agents.features.databases.drivers.mysql import read as read_mysql
    from agents.features.databases.drivers.postgresql import errors as errors_of_postgresql
    from agents.features.databases.drivers.postgresql import read as read_postgresql
    from agents.features.databases.drivers.postgresql import write as changes_postgresql
    from agents.features.databases.drivers.sqlite import read as read_sqlite
    from agents.features.databases.drivers.sqlite import write as changes_sqlite
    from sandbox import cancellation

_DRIVERS = "agents.features.databases.drivers"
_LOADED = {"sqlite": "sqlite.write", "mysql": "mysql.read", "postgresql": "postgresql.write"}
"""The module that `load` imports for each dialect; DuckDB's driver may be missing."""

LIBRARIES = ("sqlite", "duckdb")
"""Dialects whose database runs in the helper, which is killed to end a statement."""

Params = Mapping[str, Any] | None


def load(dialect: str) -> None:
    """Import the driver, so that the first statement does not wait for it."""
    if dialect == "duckdb":
        read_duckdb.load()
    else:
        import_module(f"{_DRIVERS}.{_LOADED[dialect]}")


def query(
    target: DatabaseTarget,
    text: str,
    params: Params,
    own: OwnDatabase,
    cancel: cancellation.Cancellation | None,
) -> QueryResult:
    """Run one statement that reads. Raises QueryFailed. Only servers need `cancel`."""
    dialect = dialect_of(target)
    if dialect == "sqlite":
        return read_sqlite.query_sqlite(target, text, params, own)
    if dialect == "duckdb":
        return read_duckdb.query_duckdb(target, text, params, own)
    assert cancel is not None
    if dialect == "mysql":
        return read_mysql.query_mysql(target, text, params, cancel)
    with errors_of_postgresql.told_by_postgresql(target):
        return read_postgresql.query_postgresql(target, text, params, own, cancel)


def describe(
    target: DatabaseTarget,
    what: str,
    table: str,
    own: OwnDatabase,
    cancel: cancellation.Cancellation | None,
) -> QueryResult:
    """Run `what`: `list_tables`, `get_schema` or `describe_table`. Raises QueryFailed."""
    dialect = dialect_of(target)
    if dialect == "duckdb":
        return read.OPERATIONS[what](target, table, own)
    if dialect == "mysql":
        assert cancel is not None
        return inspect_mysql.OPERATIONS[what](target, table, cancel)
    return reflection.OPERATIONS[what](target, table, own, cancel)


def write(
    target: DatabaseTarget, text: str, params: Params, own: OwnDatabase,
    cancel: cancellation.Cancellation | None, keep: Callable[[Changes], bool] | None,
) -> Changes:  # fmt: skip
    """Run one statement that writes. It is committed if `keep` returns True for its changes.

    Without `keep` it is a trial, which leaves no changes. Raises QueryFailed.
    """
    if dialect_of(target) == "sqlite":
        if keep is None:
            return changes_sqlite.try_sqlite(target, text, params or {}, own)
        return changes_sqlite.write_sqlite(target, text, params or {}, own, keep)
    assert cancel is not None
    with errors_of_postgresql.told_by_postgresql(target):
        return changes_postgresql.write_postgresql(
            target, text, params, own, cancel, keep or (lambda _: False)
        )
