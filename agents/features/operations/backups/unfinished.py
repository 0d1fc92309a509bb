"""Restores that were interrupted: their marks, and the way back to the old installation."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import sql

from agents.data_directory import make_data_directory
from agents.doors.cli.terminal import one_line
from agents.doors.database_schema import MIGRATION_LOCK
from agents.features.operations.backups.errors import (
    BackupRefused,
    EndUnknown,
    cannot_write,
)
from agents.features.operations.backups.opening import Say
from agents.features.operations.backups.postgresql import PostgresqlServer
from agents.features.operations.backups.swap import (
    FileJournal,
    Journal,
    Rename,
    as_text,
    from_text,
    put_back,
)
from agents.features.operations.owner import give_to_owner
from agents.features.operations.starting import RESTORING, is_postgresql
from agents.settings import DataSettings

_LOCK = "restore.lock"
_Connection = psycopg.Connection[tuple[Any, ...]]
_TABLE = sql.Identifier(RESTORING)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a restore does in a PostgreSQL database. `old` is empty if there were no tables."""

    schema: str
    old: str
    host: str = ""
    data: str = ""
    renames: str = "[]"


def write_mark(connection: _Connection, mark: Mark) -> None:
    """Mark the database: Vel does not start on it until the restore is complete."""
    place = sql.Identifier(mark.schema, RESTORING)
    connection.execute(sql.SQL("CREATE TABLE {} (mark text NOT NULL)").format(place))
    text = json.dumps(asdict(mark))
    connection.execute(sql.SQL("INSERT INTO {} VALUES (%s)").format(place), [text])


def _mark_of(connection: _Connection) -> Mark | None:
    found = connection.execute("SELECT to_regclass(%s)", [RESTORING]).fetchone()
    if found is None or found[0] is None:
        return None
    row = connection.execute(sql.SQL("SELECT mark FROM {}").format(_TABLE)).fetchone()
    return Mark(**json.loads(row[0])) if row is not None else None


class TableJournal(Journal):
    """The mark of the database, so that one statement completes a restore of both."""

    def __init__(self, server: PostgresqlServer, mark: Mark, data: Path) -> None:
        self._server = server
        self._mark = mark
        self._data = data

    def write(self, renames: Sequence[Rename]) -> None:
        mark = Mark(
            self._mark.schema,
            self._mark.old,
            socket.gethostname(),
            str(self._data),
            as_text(renames),
        )
        with self._server.connect() as connection:
            statement = sql.SQL("UPDATE {} SET mark = %s").format(_TABLE)
            connection.execute(statement, [json.dumps(asdict(mark))])

    def remove(self) -> None:
        try:
            with self._server.connect() as connection:
                connection.execute(sql.SQL("DROP TABLE {}").format(_TABLE))
        except (BackupRefused, psycopg.Error) as error:
            raise EndUnknown(
                f"The connection to {self._server.name} was lost at the end of the restore: "
                f"{one_line(str(error), 200)} If Vel does not start later, run: vel restore --undo"
            ) from error


def bring_back(server: PostgresqlServer, mark: Mark) -> None:
    """Delete the restored tables, and give the old ones their names. Raises `BackupRefused`."""
    schema, old = sql.Identifier(mark.schema), sql.Identifier(mark.old)
    try:
        with server.connect() as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(schema))
            if mark.old:
                connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(old, schema))
            else:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
    except psycopg.Error as error:
        raise BackupRefused(
            f"The schema {mark.schema} of {server.name} cannot be replaced: "
            f"{one_line(str(error), 200)}"
        ) from error


@contextmanager
def only_restore() -> Iterator[None]:
    """Hold the lock of restores of the data directory, which is made if it is missing.

    Raises `BackupRefused`.
    """
    data = DataSettings.now().DATA_DIR
    try:
        make_data_directory(data)
        lock = os.open(data / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise cannot_write(data, error) from error
    try:
        give_to_owner(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupRefused(
                f"Another `vel restore` works in {data}. Wait until it has ended."
            ) from None
        yield
    finally:
        os.close(lock)


def undo_unfinished(say: Say) -> bool:
    """Put the old installation back after a restore that was interrupted. Return whether it was.

    Call it in `only_restore`. You can repeat it.

    Raises:
        BackupRefused: The parts are still as the interrupted restore has left them.
    """
    data = DataSettings.now().DATA_DIR
    journal = FileJournal(data)
    try:
        if renames := journal.read():
            say("putting the installation before the interrupted restore back")
            put_back(renames)
            journal.remove()
            return True
        journal.remove()  # its unfinished file
        if is_postgresql():
            return _undo_postgresql(data, say)
    except OSError as error:
        raise BackupRefused(
            f"The files before the interrupted restore cannot be put back: {error.strerror}: "
            f"{error.filename}. Repair this, then repeat the command."
        ) from error
    return False


def _undo_postgresql(data: Path, say: Say) -> bool:
    connections[DEFAULT_DB_ALIAS].close()
    server = PostgresqlServer()
    with server.connect(autocommit=True) as connection:
        # A restore that works holds this lock, also on another host.
        locked = connection.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK]).fetchone()
        if locked is None or not locked[0]:
            raise BackupRefused(f"Another process of Vel prepares {server.name}. Stop it first.")
        mark = _mark_of(connection)
        if mark is None:
            return False
        renames = from_text(mark.renames)
        if renames and (mark.host, mark.data) != (socket.gethostname(), str(data)):
            raise BackupRefused(
                f"A restore was interrupted on the host {one_line(mark.host)} with VEL_DATA_DIR="
                f"{one_line(mark.data)}. Run this command there."
            )
        say("putting the installation before the interrupted restore back")
        put_back(renames)
        bring_back(server, mark)
    return True
