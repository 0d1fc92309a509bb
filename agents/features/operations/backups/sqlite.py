"""Copies of a SQLite database while other processes write, and their contents."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.manifest import TableContent

ENGINE = "sqlite"
ENDS = ("", "-wal", "-shm", "-journal")
_PATIENCE = 20.0
"""Seconds to wait for a lock. Readers of a database with a write-ahead log do not wait."""
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'"
    " ORDER BY name"
)


def version() -> str:
    return sqlite3.sqlite_version


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database in use to the new file `target`, as of one moment. Writers do not wait.

    Raises:
        BackupRefused: There is no database, or it cannot be copied, for example because it is
            damaged.
    """
    if not source.is_file():
        raise BackupRefused(f"There is no database {source}. Check DATABASE_URL and VEL_DATA_DIR.")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with (
            closing(_connect(source, "rw")) as database,
            closing(sqlite3.connect(target)) as copy,
        ):
            # All pages in one step: between steps, the write of another process starts it again.
            database.backup(copy)
            # One file, without a log beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        raise BackupRefused(f"The database {source} cannot be copied: {error}.") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=_PATIENCE)


@contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy to read it. Triggers and views in it cannot call functions with effects.

    Raises:
        BackupRefused: SQLite reported an error in the block: the copy is damaged.
    """
    with closing(_connect(file, "ro")) as database:
        database.execute("PRAGMA trusted_schema=OFF")
        try:
            yield database
        except sqlite3.DatabaseError as error:
            raise BackupRefused(f"The copy of the database is damaged: {error}.") from error


def contents(database: sqlite3.Connection) -> dict[str, TableContent]:
    """Return the contents of all tables.

    The values are read as stored, so a copy of an older version of Vel can be compared, too.
    """
    found = {}
    names = [name for (name,) in database.execute(_TABLES)]
    database.text_factory = bytes
    for name in names:
        digest, rows = hashlib.sha256(), 0
        quoted = name.replace('"', '""')
        for row in database.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  # quoted
            digest.update(repr(row).encode())
            rows += 1
        found[name] = TableContent(rows, digest.hexdigest())
    database.text_factory = str
    return found


def check_integrity(database: sqlite3.Connection) -> None:
    """Raise `BackupRefused` if SQLite finds damage, or a reference to a missing row."""
    (first,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if first != "ok":
        raise BackupRefused(f"The database in the backup is damaged: {first}.")
    dangling = database.execute("PRAGMA foreign_key_check").fetchone()
    if dangling is not None:
        raise BackupRefused(
            f"A row of {dangling[0]} in the backup refers to a missing row of {dangling[2]}."
        )
