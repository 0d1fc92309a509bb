"""Empty the database after a test that committed, as Django does, at a tenth of its price.

Django empties every table (on PostgreSQL with TRUNCATE: new files for 70 tables and their indexes)
and makes all content types and permissions anew. Here only tables that hold rows are emptied, and
those two are left alone as long as they hold what Django itself has last put there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

MADE_BY_DJANGO = ("auth_permission", "django_content_type")
"""Filled after each migration and flush."""

_flush_by_django = TransactionTestCase._fixture_teardown
_left_by_django: dict[str, list[Any]] = {}
"""By the database's name: the rows of MADE_BY_DJANGO after Django's own flush."""


def install() -> None:
    """All transactional tests of this process, and those with a live server, end with it."""
    TransactionTestCase._fixture_teardown = _flush  # type: ignore[method-assign]


def _flush(case: TransactionTestCase) -> None:
    connection = connections["default"]
    name = str(connection.settings_dict["NAME"])
    usual = (
        case._databases_names(include_mirrors=False) == ["default"]
        and case.available_apps is None
        and not case.serialized_rollback
    )
    # The first time, and after a test that changed them, Django does it.
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
            # As TRUNCATE would, wait for what others still write: it must not come afterwards.
            cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
            # Everything that refers to a row goes with it; keys need not be looked up.
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
    """What Django's flush empties, but for MADE_BY_DJANGO; quoted."""
    connection = connections[alias]
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    quote = connection.ops.quote_name
    return tuple(quote(name) for name in sorted(set(names) - set(MADE_BY_DJANGO)))
