"""The PostgreSQL database of DATABASE_URL as the target of a restore."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import sql

from agents.doors.cli.terminal import one_line
from agents.doors.database_schema import MIGRATION_LOCK
from agents.features.operations.backups.errors import BackupRefused, EndUnknown
from agents.features.operations.backups.opening import Opened, check_postgresql, unpack_database
from agents.features.operations.backups.postgresql import PostgresqlServer, load, major, version
from agents.features.operations.backups.review import Reviewed
from agents.features.operations.backups.swap import Journal, Rename
from agents.features.operations.backups.unfinished import (
    Mark,
    TableJournal,
    bring_back,
    write_mark,
)
from agents.features.operations.database_move.errors import MoveRefused
from agents.features.operations.database_move.quiet import refuse_active
from agents.features.operations.database_move.sides import LOCK_SECONDS

_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class PostgresqlTarget:
    """Renames the schema of an old installation, and restores into a new schema of its name."""

    def __init__(self, stamp: str) -> None:
        self._server = PostgresqlServer()
        self._old = f"before_restore_{stamp.lower()}"
        self._schema = ""
        self._has_old = False
        self._mark = Mark("", "")

    def places(self) -> list[Path]:
        return []

    @contextmanager
    def reserved(self, *, replace: bool) -> Iterator[None]:
        """Check that the old tables may be replaced, and that no session uses them."""
        connections[DEFAULT_DB_ALIAS].close()
        with self._server.connect(autocommit=True) as connection:
            # Another Vel that starts waits for this lock before it creates tables.
            if not _value(connection, f"SELECT pg_try_advisory_lock({MIGRATION_LOCK})"):
                raise BackupRefused(
                    f"Another process of Vel prepares {self._server.name}. Stop it first."
                )
            self._schema = str(_value(connection, "SELECT current_schema()") or "")
            if not self._schema:
                raise BackupRefused(
                    f"No schema in the search_path of {self._server.name} exists. Create one."
                )
            tables = {
                str(name)
                for (name,) in connection.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
                )
            }
            self._has_old = bool(tables)
            if "agents_serverprocess" in tables:
                try:
                    refuse_active(DEFAULT_DB_ALIAS)
                except MoveRefused as refused:
                    raise BackupRefused(str(refused)) from refused
                finally:
                    connections[DEFAULT_DB_ALIAS].close()
            if others := _others(connection):
                raise BackupRefused(
                    f"{others} other sessions use {self._server.name}. End them, then try again."
                )
            foreign = tables and "agents_run" not in tables
            used = foreign or any(
                _value(connection, f"SELECT EXISTS (SELECT 1 FROM {name})")  # noqa: S608
                for name in ("agents_run", "agents_agent", "auth_user")
                if name in tables
            )
            if used and not replace:
                raise BackupRefused(
                    f"This installation is not empty: {self._server.name} has rows. Name an empty "
                    "database in DATABASE_URL, or add --replace to rename and keep the old schema."
                )
            yield

    @contextmanager
    def filled(
        self, opened: Opened, scratch: Path, make: Callable[[], Reviewed]
    ) -> Iterator[Reviewed]:
        """Restore the database in place. An error in the block brings the old one back."""
        file = scratch / "database"
        unpack_database(opened, file)
        with self._server.connect() as connection:
            made_with = major(opened.manifest.database.version)
            if major(version(connection)) < made_with:
                raise BackupRefused(
                    f"The backup is of PostgreSQL {made_with}, and {self._server.name} has version "
                    f"{version(connection)}. Use the same or a later version."
                )
        self._set_aside()
        try:
            load(self._server, file)
            check_postgresql(opened, self._server)
            reviewed = make()
            connections[DEFAULT_DB_ALIAS].close()
            yield reviewed
        except EndUnknown:
            raise
        except BaseException as error:
            connections[DEFAULT_DB_ALIAS].close()
            try:
                bring_back(self._server, self._mark)
            except BackupRefused as refused:
                raise BackupRefused(
                    f"{one_line(str(error), 300)} The old tables could not be put back: {refused} "
                    "Then run: vel restore --undo"
                ) from error
            raise

    def renames(self) -> list[Rename]:
        """Return nothing: the tables have their names already."""
        return []

    def journal(self, data: Path) -> Journal:
        return TableJournal(self._server, self._mark, data)

    def kept(self) -> list[str]:
        return [f"the schema {self._old} of {self._server.name}"] if self._has_old else []

    def _set_aside(self) -> None:
        """Rename the schema of the old tables, and create an empty one with a mark."""
        self._mark = Mark(self._schema, self._old if self._has_old else "")
        schema, old = sql.Identifier(self._schema), sql.Identifier(self._old)
        try:
            with self._server.connect() as connection:
                if self._has_old:
                    connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(schema, old))
                    connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
                write_mark(connection, self._mark)
        except psycopg.errors.InsufficientPrivilege as error:
            raise BackupRefused(
                f"The role of DATABASE_URL may not rename the schema {self._schema} of "
                f"{self._server.name}. Use the owner of the database, or an empty database."
            ) from error


def _others(connection: psycopg.Connection[tuple[object, ...]]) -> object:
    """Return the number of other sessions. Waits for those that are just ending."""
    end = time.monotonic() + LOCK_SECONDS
    while (found := _value(connection, _OTHERS)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _value(connection: psycopg.Connection[tuple[object, ...]], query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
