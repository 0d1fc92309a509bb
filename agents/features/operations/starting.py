"""Databases on which Vel does not start: moved ones, unfinished restores, other encodings.

A mark is a table, which exists only in such a database. It is not a model: otherwise, every
database would have the table. A restore of files and SQLite has its mark in the data directory.

Each start imports this module, so it is not in the package `database_move`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.settings import DataSettings

TABLE = "vel_operations_moved"
RESTORING = "vel_operations_restoring"
"""The mark of a restore into PostgreSQL."""
JOURNAL = "restoring.json"
"""The mark of a restore in the data directory: the list of its renames."""


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
    names = connections[DEFAULT_DB_ALIAS].introspection.table_names()
    if TABLE in names and (place := moved_to()):
        return (
            f"This database was moved to {place}. Set DATABASE_URL to the URL of that one. To use "
            "this one again instead, run: vel database reopen"
        )
    return _unfinished(names)


def unfinished_restore() -> str:
    """Return why Vel does not use an installation with an unfinished restore, or an empty text."""
    return _unfinished(connections[DEFAULT_DB_ALIAS].introspection.table_names())


def _unfinished(names: Sequence[str]) -> str:
    if RESTORING in names or os.path.lexists(DataSettings.now().DATA_DIR / JOURNAL):
        return (
            "A restore is not complete. Wait for it. If it was interrupted, run `vel restore "
            "--undo`: it puts the installation before the restore back."
        )
    return ""


def encoding_refusal() -> str:
    """Return why Vel does not start on a PostgreSQL database that cannot store all texts.

    The server names its encoding with each new connection, so this takes no query.
    """
    if not is_postgresql():
        return ""
    connection = connections[DEFAULT_DB_ALIAS]
    connection.ensure_connection()
    encoding = connection.connection.info.parameter_status("server_encoding")
    if encoding in (None, "UTF8"):
        return ""
    return (
        f"The PostgreSQL database {connection.settings_dict['NAME']!r} has the encoding "
        f"{encoding}. Vel needs UTF8. Create another database with ENCODING 'UTF8' TEMPLATE "
        "template0, and set DATABASE_URL to it."
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


def is_postgresql() -> bool:
    """Return whether Vel's database is PostgreSQL. It needs no connection."""
    engine: str = connections[DEFAULT_DB_ALIAS].settings_dict["ENGINE"]
    return engine.endswith("postgresql")


def missing_file() -> str:
    """Return the path of the SQLite file if it is missing. A connection would create it."""
    settings = connections[DEFAULT_DB_ALIAS].settings_dict
    name = str(settings["NAME"])
    is_file = settings["ENGINE"].endswith("sqlite3")
    return name if is_file and not Path(name).is_file() else ""


REFUSALS = (encoding_refusal, refusal)
