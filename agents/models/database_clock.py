"""The database's own clock, which is the same for all processes and machines."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import FloatField, Func
from django.db.models.sql.compiler import SQLCompiler

_NOW = {
    # SQLite has unixepoch('subsec') since 3.42; Debian 12 has 3.40.
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    # Not now(), which returns the start of the transaction.
    "postgresql": "extract(epoch from clock_timestamp())::double precision",
}


def now_sql() -> str:
    """Return the SQL expression of the current time, in seconds since 1970."""
    return _NOW[connection.vendor]


class DatabaseNow(Func):
    """`now_sql` as an expression of the ORM."""

    output_field = FloatField()

    def as_sql(  # type: ignore[override]  # it takes no template and no function
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, tuple[()]]:
        return _NOW[connection.vendor], ()


def database_now() -> float:
    """Query the current time of the database. Return it in seconds since 1970."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now_sql()}")  # a constant
        return float(cursor.fetchone()[0])
