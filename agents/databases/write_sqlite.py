"""One statement that writes, in SQLite: tried and taken back, or kept if it does what was shown.

The authorizer allows rows of ordinary tables to be changed and nothing else: no DDL, ATTACH,
PRAGMA, virtual or internal table, and no end of the transaction, which is Vel's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from agents.databases.changes import Changes
from agents.databases.errors import QueryFailed
from agents.databases.own_database import OwnDatabase
from agents.databases.readonly_sqlite import BUSY_SECONDS, cell, limit, path_of
from agents.databases.rows import RowsWithin
from agents.databases.sqlite_authorizer import Authorizer, reading_only
from agents.databases.sqlite_hidden import HiddenInSqlite, find_hidden
from agents.databases.sqlite_recorder import Recorder
from agents.databases.table import QueryResult
from agents.databases.target import DatabaseTarget
from sandbox.cancellation import Cancellation

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
    cancel: Cancellation,
    keep: Callable[[Changes], bool],
) -> Changes:
    """Run the statement, and commit it if `keep` says so of what it changed.

    Blocks. Raises QueryFailed or sqlite3's errors; then, and when it is not kept, nothing has
    changed.
    """
    with _open(target, own, cancel) as connection:
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
        connection.set_authorizer(None)
        if not keep(changes):
            connection.execute("ROLLBACK")
        elif cancel.cancelled:
            raise QueryFailed("The call was cancelled; nothing was written.", "cancelled")
        else:
            # A lock that others hold is waited for; if it fails nothing is written.
            connection.set_progress_handler(None, 0)
            connection.execute("COMMIT")
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
            # SQLite has made all changes when it gives the first row.
            kept = RowsWithin(target, [column[0] for column in cursor.description])
            for row in cursor:
                if not kept.add(tuple(cell(value) for value in row)):
                    raise QueryFailed(
                        "It returns more than the connection allows: return less.", "too_much"
                    )
            returned = kept.result()
    except sqlite3.OperationalError as problem:
        if "user-defined function raised exception" in str(problem):
            raise QueryFailed(
                f"It changes more than the connection allows at once ({target.max_rows:,} rows, "
                f"{target.max_bytes:,} bytes): change fewer.",
                "too_much",
            ) from None
        raise
    if not connection.in_transaction:
        # As after INSERT OR ROLLBACK, or RAISE(ROLLBACK) in a trigger.
        raise QueryFailed("The statement ended its transaction; nothing was written.", "database")
    changed = recorder.changed()
    if sum(sum(table.counts) for table in changed) < connection.total_changes - before:
        raise QueryFailed("It changes rows that cannot be shown, so it cannot be made.", "unseen")
    return Changes(changed, returned)


@contextmanager
def _open(
    target: DatabaseTarget, own: OwnDatabase, cancel: Cancellation
) -> Iterator[sqlite3.Connection]:
    """A connection within a write transaction, which ends with it."""
    connection = sqlite3.connect(
        f"file:{quote(path_of(target, own))}?mode=rw",
        uri=True,
        timeout=min(BUSY_SECONDS, target.statement_seconds),
        isolation_level=None,
        check_same_thread=False,
        cached_statements=0,
    )
    try:
        limit(connection, target, cancel)
        connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, _TRIGGER_DEPTH)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        # Nothing of a trial comes as far as the file, however large it is.
        connection.execute("PRAGMA cache_spill = OFF")
        # Else rows that REPLACE takes away would not be told of.
        connection.execute("PRAGMA recursive_triggers = ON")
        connection.execute("BEGIN IMMEDIATE")
        opened = connection.execute("PRAGMA database_list").fetchall()
        if len([row for row in opened if row[1] != "temp"]) != 1 or own.is_file(opened[0][2]):
            raise QueryFailed(f"{target.name} is not the file it was.", "own_database")
        yield connection
    finally:
        with suppress(sqlite3.Error):
            connection.set_authorizer(None)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        connection.close()


def _writing(hidden: HiddenInSqlite, recorder: Recorder) -> Authorizer:
    """Reading as everywhere, and changing rows of the tables that the recorder watches."""
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
            return sqlite3.SQLITE_DENY  # the names of the triggers are there
        return reads(action, first, second, db, inside)

    return authorize
