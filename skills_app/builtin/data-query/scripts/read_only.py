"""Open a SQLite file so that no statement can change it, by read-only mode and an authorizer."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from outcome import UNREADABLE, WRONG_CALL, Stop, input_file

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_FORBIDDEN_FUNCTIONS = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
)
_PRAGMAS = frozenset({"table_info", "table_xinfo", "foreign_key_list", "index_list", "index_info"})


def connect(path: str, seconds: float) -> tuple[sqlite3.Connection, list[str]]:
    """Return (connection, notes). After `seconds`, statements on the connection are interrupted.

    If FILE-wal has changes that are not in the database file yet, both files are copied first:
    SQLite cannot read these changes in a read-only directory. Raises `Stop` if the file is not a
    SQLite database.
    """
    file, notes = input_file(path), []
    with open(file, "rb") as opened:
        start = opened.read(16)
    if start != b"SQLite format 3\0":
        raise Stop(
            f"{path} is not a SQLite database. For CSV use the skill csv-analytics.", UNREADABLE
        )
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        directory = Path(tempfile.mkdtemp(prefix="query-"))
        file = Path(shutil.copy(file, directory / "data.sqlite"))
        shutil.copy(log, directory / "data.sqlite-wal")
        notes.append(f"{log.name} holds changes; a copy with them was read.")
        mode = "ro"
    else:
        mode = "ro&immutable=1"
    try:
        connection = sqlite3.connect(f"file:{quote(str(file))}?mode={mode}", uri=True)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        raise Stop(
            f"{path} cannot be read: {error}. The file may be damaged.", UNREADABLE
        ) from None
    connection.set_authorizer(_authorize)
    deadline = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    return connection, notes


def _authorize(action: int, first: str | None, second: str | None, *rest: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA:
        return sqlite3.SQLITE_OK if first in _PRAGMAS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def refuse(error: sqlite3.Error, seconds: float) -> Stop:
    """Return the exception for an SQLite error of a statement, with advice.

    `seconds` is the time limit of `connect`, for the message.
    """
    words = str(error)
    if "not authorized" in words or "prohibited" in words:
        words = "only one statement that reads is allowed: SELECT or WITH … SELECT"
    elif "interrupted" in words:
        words = f"it ran for more than {seconds:g} s. Narrow it, or give --timeout"
    elif "one statement at a time" in words:
        words = "give one statement only"
    return Stop(f"The query was refused: {words}.", WRONG_CALL)
