"""The mark in a database that was moved: Vel does not start on it until an operator reopens it.

The mark is a table, which exists only in such a database. It is not a model: otherwise, every
database would have the table.

Each start imports this module, so it is not in the package `database_move`.
"""

from __future__ import annotations

from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "vel_operations_moved"


def moved_to(using: str = DEFAULT_DB_ALIAS) -> str:
    """Return the place of the new database, without a password, or an empty text.

    Takes one query, and a second one in a database that was moved.
    """
    connection = connections[using]
    if TABLE not in connection.introspection.table_names():
        return ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT max(place) FROM {TABLE}")  # noqa: S608  # a constant
        return str(cursor.fetchone()[0] or "another database")


def refusal() -> str:
    """Return why Vel does not start on this database; empty if it may."""
    place = moved_to()
    return (
        f"This database was moved to {place}. Set DATABASE_URL to the URL of that one. To use this "
        "one again instead, run: vel database reopen"
        if place
        else ""
    )


def write_mark(connection: BaseDatabaseWrapper, place: str) -> None:
    """Mark the database as moved to `place`, which is shown to people."""
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {TABLE} (place text NOT NULL)")
        cursor.execute(f"INSERT INTO {TABLE} (place) VALUES (%s)", [place])  # noqa: S608


def remove_mark() -> str:
    """Remove the mark, and return the place of the new database, or an empty text."""
    place = moved_to()
    if place:
        with transaction.atomic(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute(f"DROP TABLE {TABLE}")
    return place


def missing_file() -> str:
    """Return the path of the SQLite file if it is missing. A connection would create it."""
    settings = connections[DEFAULT_DB_ALIAS].settings_dict
    name = str(settings["NAME"])
    is_file = settings["ENGINE"].endswith("sqlite3")
    return name if is_file and not Path(name).is_file() else ""


REFUSALS = (refusal,)
