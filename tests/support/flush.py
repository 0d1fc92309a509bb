"""Empty the database after a test that committed, as Django does, in a tenth of the time.

Django empties every table (on PostgreSQL with TRUNCATE: new files for 70 tables and their indexes)
and creates all content types and permissions again. This module only empties tables with rows, and
keeps those two as long as they have the rows that Django created.
"""

from __future__ import annotations

from functools import cache
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
    name = str(connection.settings_dict["NAME"])
    usual = (
        case._databases_names(include_mirrors=False) == ["default"]
        and case.available_apps is None
        and not case.serialized_rollback
    )
    # Django's own flush is used the first time, and after a test that changed these rows.
    if usual and _left_by_django.get(name) == _made_by_django(connection):
        _delete_rows(connection)
    else:
        _flush_by_django(case)
        _left_by_django[name] = _made_by_django(connection)


def _made_by_django(connection: BaseDatabaseWrapper) -> list[Any]:
    rows: list[Any] = []
    with connection.cursor() as cursor:
        for table in MADE_BY_DJANGO:
            cursor.execute(f"SELECT * FROM {table} ORDER BY id")
            rows += cursor.fetchall()
    return rows


def _delete_rows(connection: BaseDatabaseWrapper) -> None:
    tables = _tables(connection.alias)
    postgres = connection.vendor == "postgresql"
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if postgres:
            # Wait for other transactions, as TRUNCATE does: their rows must not appear after the
            # flush.
            cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
            # Rows that refer to a deleted row are deleted too, so PostgreSQL need not check the
            # keys.
            cursor.execute("SET LOCAL session_replication_role = replica")
            one = "SELECT {at} WHERE EXISTS (SELECT 1 FROM {table})"
            cursor.execute(
                " UNION ALL ".join(one.format(at=at, table=t) for at, t in enumerate(tables))
            )
            tables = tuple(tables[at] for (at,) in cursor.fetchall())
        for table in tables:
            cursor.execute(f"DELETE FROM {table}")


@cache
def _tables(alias: str) -> tuple[str, ...]:
    """Return the quoted names of the tables that Django's flush empties, less `MADE_BY_DJANGO`."""
    connection = connections[alias]
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    quote = connection.ops.quote_name
    return tuple(quote(name) for name in sorted(set(names) - set(MADE_BY_DJANGO)))
