"""Read-only SQLite: the file is opened for reading, and SQLite refuses all other operations.

Each statement has its own connection, so agents cannot affect each other.

The only allowed operations are reading and known functions: SQLite calls the authorizer when it
compiles a statement, for every table, column and function.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from agents.features.databases.drivers.address import parsed
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.rows import RowsWithin
from agents.features.databases.drivers.sqlite.hidden import HiddenInSqlite, find_hidden
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.values import form_of

BUSY_SECONDS = 5.0
_VIRTUAL_TABLES = 100
_CELL_BYTES = 1_000_000
"""Largest length of a value."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 1_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


class _Reading(sqlite3.Connection):
    """A connection with one transaction, which ends only when it is closed."""

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass


def query_sqlite(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None,
    own: OwnDatabase,
) -> QueryResult:
    """Run one statement. Blocks. Raises QueryFailed with SQLite's message if there is no result."""
    with told_by_sqlite(), read_only_sqlite(target, own) as (connection, hidden):
        given = params or {}
        hidden.check(connection, query, given)
        cursor = connection.execute(query, given)
        if cursor.description is None:
            return QueryResult()
        kept = RowsWithin(target, [column[0] for column in cursor.description])
        form = form_of(target)
        for row in cursor:
            if not kept.add(tuple(map(form, row))):
                break
        return kept.result()


@contextmanager
def told_by_sqlite() -> Iterator[None]:
    """Turn SQLite's errors into QueryFailed."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as problem:
        text = str(problem)
        if text == "not authorized":
            text += (
                ": only one SELECT, VALUES or WITH … SELECT is possible, with SQLite's functions."
            )
        # The low byte is the primary code; extended codes give the kind of busy error.
        is_busy = (getattr(problem, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_BUSY
        raise QueryFailed(text, "conflict" if is_busy else "database") from None


@contextmanager
def read_only_sqlite(
    target: DatabaseTarget, own: OwnDatabase
) -> Iterator[tuple[sqlite3.Connection, HiddenInSqlite]]:
    """Yield a read-only connection in a read transaction."""
    path = path_of(target, own)
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=ro",
        uri=True,
        timeout=min(BUSY_SECONDS, target.statement_seconds),
        isolation_level=None,
        check_same_thread=False,
        cached_statements=0,
        factory=_Reading,
    )
    try:
        hidden = _guard(connection, target, own)
        yield connection, hidden
    finally:
        connection.close()


def path_of(target: DatabaseTarget, own: OwnDatabase) -> str:
    """Return the target's file, checked again. Raises QueryFailed if agents may not read it."""
    url = parsed(target)
    path = url.database or ""
    if url.query or path.startswith("file:"):
        raise QueryFailed(f"The URL of {target.name} must not have options.", "configuration")
    if not path or path == ":memory:":
        raise QueryFailed(f"The URL of {target.name} names no file.", "configuration")
    path = os.path.realpath(path)
    try:
        found = os.stat(path)
    except OSError:
        raise QueryFailed(f"The file of {target.name} does not exist.", "configuration") from None
    if not stat.S_ISREG(found.st_mode):
        raise QueryFailed(f"The file of {target.name} is no regular file.", "configuration")
    if own.is_file(path):
        raise QueryFailed(
            f"{target.name} is Vel's own database, which agents cannot query.", "own_database"
        )
    return path


def _guard(
    connection: sqlite3.Connection, target: DatabaseTarget, own: OwnDatabase
) -> HiddenInSqlite:
    limit(connection)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    begin_reading(connection, target, own)
    hidden = find_hidden(connection, target)
    meet_virtual_tables(connection)
    connection.set_authorizer(reading_only(hidden.hides, hidden.virtual))
    return hidden


def begin_reading(connection: sqlite3.Connection, target: DatabaseTarget, own: OwnDatabase) -> None:
    """Start a transaction with one snapshot of the database, and check its file."""
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as problem:
        if "unable to open" not in str(problem):
            raise
        raise QueryFailed(
            f"{target.name} cannot be opened for reading. In WAL mode SQLite must be able to write "
            "to the directory: allow this, or run PRAGMA journal_mode=DELETE on the database.",
            "configuration",
        ) from None
    opened = connection.execute("PRAGMA database_list").fetchall()
    if len(opened) != 1 or own.is_file(opened[0][2]):
        raise QueryFailed(f"{target.name} was replaced by another file.", "own_database")


def limit(connection: sqlite3.Connection) -> None:
    """Limit the size of a statement and of its values. The caller limits its time."""
    for name, value in _LIMITS.items():
        connection.setlimit(name, value)
    connection.text_factory = lambda data: data.decode(errors="replace")


def meet_virtual_tables(connection: sqlite3.Connection) -> None:
    """Use virtual tables once: SQLite declares them then, which authorizers see as a write."""
    names = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual' LIMIT ?",
            (_VIRTUAL_TABLES,),
        )
    ]
    for name in [*names, "json_each", "json_tree", *(f"pragma_{name}" for name in PRAGMAS)]:
        quoted = name.replace('"', '""')
        # A table whose module is missing fails again later, with a message.
        with suppress(sqlite3.OperationalError):
            connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')  # noqa: S608


PRAGMAS = frozenset(
    {
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo",
        "foreign_key_list", "collation_list", "encoding", "user_version", "data_version",
        "read_uncommitted",
    }
)  # fmt: skip
"""Pragmas that only describe the schema. A value is allowed if it names a table."""
_WITHOUT_VALUE = frozenset({"encoding", "user_version", "data_version", "read_uncommitted"})

_FUNCTIONS = """
    abs changes char coalesce concat concat_ws format glob hex ifnull iif instr last_insert_rowid
    length like likelihood likely lower ltrim max min nullif octet_length printf quote random
    randomblob replace round rtrim sign soundex substr substring total_changes trim typeof unhex
    unicode unlikely upper zeroblob sqlite_version
    date time datetime julianday unixepoch strftime timediff current_date current_time
    current_timestamp
    avg count group_concat string_agg sum total
    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value
    nth_value
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10
    log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
    json jsonb json_array jsonb_array json_array_length json_error_position json_extract
    jsonb_extract json_insert json_object json_patch json_pretty json_quote json_remove
    json_replace json_set json_type json_valid json_group_array json_group_object json_each
    json_tree -> ->>
    match bm25 highlight snippet rtreecheck matchinfo offsets
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())

_UNREADABLE = ("dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used")
_OWN_TABLES = frozenset(
    {
        "sqlite_master",
        "sqlite_schema",
        "sqlite_temp_master",
        "sqlite_temp_schema",
        "sqlite_sequence",
    }
)

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


def reading_only(hides: Callable[[str, str], bool], unreadable: Collection[str] = ()) -> Authorizer:
    """Return an authorizer for reading, except hidden columns and the tables in `unreadable`.

    `hides(table, column)` returns whether a column is hidden.
    """

    def authorize(
        action: int, first: str | None, second: str | None, _db: str | None, _view: str | None
    ) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            allowed = True
        elif action == sqlite3.SQLITE_READ:
            table, column = (first or "").lower(), (second or "").lower()
            allowed = not (
                table in _UNREADABLE
                or (table.startswith("sqlite_") and table not in _OWN_TABLES)
                or table in unreadable
                or hides(table, column)
            )
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() in FUNCTIONS
        elif action == sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            allowed = name in PRAGMAS and (second is None or name not in _WITHOUT_VALUE)
        else:
            allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return authorize
