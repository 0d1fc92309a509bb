"""One statement that writes in SQLite: tried on a copy, or committed as approved.

A trial needs no approval, so it must not take a lock that blocks other writers. It copies the
database into a temporary one, which SQLite deletes, and changes the copy.

The authorizer allows changes of rows in ordinary tables only: no DDL, ATTACH, PRAGMA, virtual or
internal table, and no end of the transaction, which Vel controls.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import quote

from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.process_limits import FILE_BYTES, bound_files
from agents.features.databases.drivers.rows import RowsWithin
from agents.features.databases.drivers.sqlite.hidden import HiddenInSqlite, find_hidden
from agents.features.databases.drivers.sqlite.read import (
    BUSY_SECONDS,
    Authorizer,
    begin_reading,
    limit,
    path_of,
    reading_only,
    told_by_sqlite,
)
from agents.features.databases.drivers.sqlite.recorder import Recorder
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.values import form_of

COPIED_BYTES = 2 * 1024**3
"""Limit for the copy of a trial. Larger databases cannot be written."""
_SPARE = 2
"""Free space for temporary files, as a multiple of the copy's size."""
_TRIGGER_DEPTH = 20
_NOT_AUTHORIZED = (
    "not authorized: one INSERT, UPDATE or DELETE of rows in ordinary tables is possible, with "
    "SQLite's functions; tables that have hidden columns, or that one refers to, cannot be written."
)
_CHANGES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)


def write_sqlite(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any],
    own: OwnDatabase,
    keep: Callable[[Changes], bool],
) -> Changes:
    """Run the statement, and commit it if `keep` returns True for its changes.

    Blocks. Raises QueryFailed. Without a commit the database does not change.
    """
    with told_by_sqlite(), _open(target, own) as connection:
        changes = _changes(connection, target, query, params)
        connection.set_authorizer(None)
        # It waits for locks of others. If it fails, no data is written.
        connection.execute("COMMIT" if keep(changes) else "ROLLBACK")
        return changes


def try_sqlite(
    target: DatabaseTarget, query: str, params: Mapping[str, Any], own: OwnDatabase
) -> Changes:
    """Return the changes that the statement would make. Blocks. Raises QueryFailed.

    The database is only read.
    """
    with told_by_sqlite(), _copy(target, own) as connection:
        return _changes(connection, target, query, params)


def _changes(
    connection: sqlite3.Connection, target: DatabaseTarget, query: str, params: Mapping[str, Any]
) -> Changes:
    """Run the statement within the connection's transaction."""
    hidden = find_hidden(connection, target)
    recorder = Recorder(target)
    recorder.install(connection, hidden)
    connection.set_authorizer(_writing(hidden, recorder))
    try:
        hidden.check(connection, query, params)
        changes = _run(connection, target, query, params, recorder)
    except sqlite3.DatabaseError as problem:
        if str(problem) != "not authorized":
            raise
        raise QueryFailed(_NOT_AUTHORIZED) from None
    changes.check(target)
    return changes


def _run(
    connection: sqlite3.Connection, target: DatabaseTarget, query: str, params: Mapping[str, Any],
    recorder: Recorder,
) -> Changes:  # fmt: skip
    before = connection.total_changes
    try:
        cursor = connection.execute(query, params)
        returned = QueryResult()
        if cursor.description is not None:
            # SQLite makes all changes before it returns the first row.
            kept = RowsWithin(target, [column[0] for column in cursor.description])
            form = form_of(target)
            for row in cursor:
                if not kept.add(tuple(map(form, row))):
                    raise QueryFailed(
                        "It returns more than the limit of the connection: return fewer rows or "
                        "columns.",
                        "too_much",
                    )
            returned = kept.result()
    except sqlite3.OperationalError as problem:
        if "user-defined function raised exception" in str(problem):
            raise QueryFailed(
                f"It changes more than the limit of the connection ({target.max_rows:,} rows, "
                f"{target.max_bytes:,} bytes): change fewer rows in one statement.",
                "too_much",
            ) from None
        raise
    if not connection.in_transaction:
        # For example after INSERT OR ROLLBACK, or RAISE(ROLLBACK) in a trigger.
        raise QueryFailed("The statement ended its transaction; nothing was written.", "database")
    changed = recorder.changed()
    if sum(sum(table.counts) for table in changed) < connection.total_changes - before:
        raise QueryFailed("It changes rows that cannot be shown for approval.", "unseen")
    return Changes(changed, returned)


@contextmanager
def _open(target: DatabaseTarget, own: OwnDatabase) -> Iterator[sqlite3.Connection]:
    """Yield a connection in a write transaction, which ends with it."""
    path = path_of(target, own)
    connection = _connect(f"file:{quote(path)}?mode=rw", target)
    try:
        _prepare(connection)
        # Without spilling, no change reaches the file before the commit.
        connection.execute("PRAGMA cache_spill = OFF")
        bound_files(os.path.getsize(path) + FILE_BYTES)
        connection.execute("BEGIN IMMEDIATE")
        opened = connection.execute("PRAGMA database_list").fetchall()
        if len([row for row in opened if row[1] != "temp"]) != 1 or own.is_file(opened[0][2]):
            raise QueryFailed(f"{target.name} was replaced by another file.", "own_database")
        yield connection
    finally:
        with suppress(sqlite3.Error):
            connection.set_authorizer(None)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        connection.close()
        bound_files(FILE_BYTES)


@contextmanager
def _copy(target: DatabaseTarget, own: OwnDatabase) -> Iterator[sqlite3.Connection]:
    """Yield a connection in a transaction on a copy, which SQLite deletes after use.

    During the copy, others can write in WAL mode. In other modes they wait for it, as for any
    reader.
    """
    path = path_of(target, own)
    with closing(_connect("", target)) as copy:
        # Opened for writing, so that no WAL files are left behind. The statement does not run on
        # it.
        with closing(_connect(f"file:{quote(path)}?mode=rw", target)) as source:
            source.execute("PRAGMA query_only = ON")
            begin_reading(source, target, own)
            size = _size_for_copy(source, target)
            bound_files(size + FILE_BYTES)
            source.backup(copy)
        _prepare(copy)
        copy.execute("BEGIN IMMEDIATE")
        try:
            yield copy
        finally:
            bound_files(FILE_BYTES)


def _size_for_copy(source: sqlite3.Connection, target: DatabaseTarget) -> int:
    """Return the database's size. Raises QueryFailed if it is too large or there is no room."""
    pages: int = source.execute("PRAGMA page_count").fetchone()[0]
    size: int = pages * source.execute("PRAGMA page_size").fetchone()[0]
    if size > COPIED_BYTES:
        raise QueryFailed(
            f"{target.name} cannot be written: it has {size:,} bytes, and statements are tried on "
            f"a copy of at most {COPIED_BYTES:,} bytes.",
            "configuration",
        )
    # The worker that started this process has set the variable.
    room = os.statvfs(os.environ.get("SQLITE_TMPDIR", "/var/tmp"))  # noqa: S108
    if room.f_bavail * room.f_frsize < _SPARE * size:
        raise QueryFailed(
            f"{target.name} cannot be copied to try a statement: there is too little room for "
            "temporary files on Vel's host.",
            "configuration",
        )
    return size


def _connect(name: str, target: DatabaseTarget) -> sqlite3.Connection:
    connection = sqlite3.connect(
        name,
        uri=True,
        timeout=min(BUSY_SECONDS, target.statement_seconds),
        isolation_level=None,
        check_same_thread=False,
        cached_statements=0,
    )
    limit(connection)
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, _TRIGGER_DEPTH)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    # Otherwise the triggers would not see rows that REPLACE removes.
    connection.execute("PRAGMA recursive_triggers = ON")


def _writing(hidden: HiddenInSqlite, recorder: Recorder) -> Authorizer:
    """Return an authorizer for reading, and for changes of the recorder's tables."""
    reads = reading_only(hidden.hides, hidden.virtual)
    watched = {table.lower() for table in recorder.tables}

    def authorize(
        action: int, first: str | None, second: str | None, db: str | None, inside: str | None
    ) -> int:
        if action in _CHANGES:
            allowed = db == "main" and (first or "").lower() in watched
            return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and second == recorder.name:
            ours = (inside or "").startswith(f"{recorder.name}_")
            return sqlite3.SQLITE_OK if ours else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and db == "temp":
            return sqlite3.SQLITE_DENY  # it has the names of the triggers
        return reads(action, first, second, db, inside)

    return authorize
