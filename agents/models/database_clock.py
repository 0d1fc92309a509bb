"""The database's own clock, which all processes and machines agree on."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import FloatField, Func
from django.db.models.sql.compiler import SQLCompiler

_NOW = {
    # unixepoch('subsec') came with SQLite 3.42; Debian 12 has 3.40.
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    # Not now(), which stands still within a transaction.
    "postgresql": "extract(epoch from clock_timestamp())::double precision",
}


def now_sql() -> str:
    """This moment as an SQL expression, in seconds since 1970."""
    return _NOW[connection.vendor]


class DatabaseNow(Func):
    """`now_sql` for the ORM."""

    output_field = FloatField()

    def as_sql(  # type: ignore[override]  # it takes no template and no function
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, tuple[()]]:
        return _NOW[connection.vendor], ()


def database_now() -> float:
    """This moment in seconds since 1970, by a question of its own."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now_sql()}")  # a constant
        return float(cursor.fetchone()[0])
