"""Empty the database after a test that committed, as Django does, in a tenth of the time.

Django empties every table (on PostgreSQL with TRUNCATE: new files for 70 tables and their indexes)
and creates all content types and permissions again. This module only empties tables with rows, and
keeps those two as long as they have the rows that Django created.

On SQLite it uses its own connection, which stays open: it immediately sees that a test committed
nothing, and Django's connections do not write the whole log to the database when they close.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

MADE_BY_DJANGO = ("auth_permission", "django_content_type")
"""Django fills these tables after each migration and flush."""

_flush_by_django = TransactionTestCase._fixture_teardown
_left_by_django: dict[str, list[Any]] = {}
"""The rows of `MADE_BY_DJANGO` after Django's own flush, by the database's name."""


def install() -> None:
    """Use this flush for all transactional tests of this process."""
    TransactionTestCase._fixture_teardown = _flush  # type: ignore[method-assign]


def _flush(case: TransactionTestCase) -> None:
    connection = connections["default"]
    usual = (
        case._databases_names(include_mirrors=False) == ["default"]
        and case.available_apps is None
        and not case.serialized_rollback
    )
    empty = _empty_sqlite if connection.vendor == "sqlite" else _empty_postgres
    # Django's own flush is used the first time, and after a test that changed these rows.
    if not (usual and empty(connection)):
        _flush_by_django(case)
        with connection.cursor() as cursor:
            _left_by_django[str(connection.settings_dict["NAME"])] = _made_by_django(cursor)


def _empty_sqlite(connection: BaseDatabaseWrapper) -> bool:
    """Empty the tables. Return False if this is a case for Django's own flush."""
    connection.close()  # a transaction that the test has left open would have the lock
    own = _own_connection(Path(connection.settings_dict["NAME"]))
    if own.empty_at == own.version():
        return True
    cursor = own.connection.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    try:
        if not _is_unchanged(connection, cursor):
            return False
        own.empty_at = own.version()
        for table in _tables_with_rows(connection, cursor):
            cursor.execute(f"DELETE FROM {table}")
    finally:
        cursor.execute("COMMIT")
    return True


def _empty_postgres(connection: BaseDatabaseWrapper) -> bool:
    """Empty the tables. Return False if this is a case for Django's own flush."""
    with connection.cursor() as cursor:
        if not _is_unchanged(connection, cursor):
            return False
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # Wait for other transactions, as TRUNCATE does: their rows must not appear after the
        # flush.
        tables = ", ".join(_tables(connection.alias))
        cursor.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
        # Rows that refer to a deleted row are deleted too, so PostgreSQL need not check the keys.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in _tables_with_rows(connection, cursor):
            cursor.execute(f"DELETE FROM {table}")
    return True


class _Own:
    """This module's connection to a SQLite file. It does not check foreign keys."""

    def __init__(self, file: Path) -> None:
        self.inode = file.stat().st_ino
        self.connection = sqlite3.connect(
            file, timeout=20, isolation_level=None, check_same_thread=False
        )
        self.connection.execute("PRAGMA synchronous=OFF")
        self.empty_at: int | None = None
        """The version of the database after the last flush."""

    def version(self) -> int:
        """Return a number that changes when another connection commits."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])


_own: dict[Path, _Own] = {}


def _own_connection(file: Path) -> _Own:
    found = _own.get(file)
    if found is not None and found.inode != file.stat().st_ino:
        found.connection.close()
        found = None
    if found is None:
        found = _own[file] = _Own(file)
    return found


def _is_unchanged(connection: BaseDatabaseWrapper, cursor: Any) -> bool:
    """Return whether the tables of `MADE_BY_DJANGO` have the rows that Django created."""
    name = str(connection.settings_dict["NAME"])
    return _left_by_django.get(name) == _made_by_django(cursor)


def _made_by_django(cursor: Any) -> list[Any]:
    rows: list[Any] = []
    for table in MADE_BY_DJANGO:
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        rows += cursor.fetchall()
    return rows


def _tables_with_rows(connection: BaseDatabaseWrapper, cursor: Any) -> list[str]:
    tables = _tables(connection.alias)
    one = "SELECT {at} WHERE EXISTS (SELECT 1 FROM {table})"
    cursor.execute(" UNION ALL ".join(one.format(at=at, table=t) for at, t in enumerate(tables)))
    return [tables[at] for (at,) in cursor.fetchall()]


@cache
def _tables(alias: str) -> tuple[str, ...]:
    """Return the quoted names of the tables that Django's flush empties, less `MADE_BY_DJANGO`."""
    connection = connections[alias]
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    quote = connection.ops.quote_name
    return tuple(quote(name) for name in sorted(set(names) - set(MADE_BY_DJANGO)))
