"""SQLite as the source or the target of a move."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import DatabaseError, IntegrityError, OperationalError, transaction

from agents.doors.cli.terminal import one_line
from agents.features.operations.database_move.errors import MoveRefused
from agents.features.operations.database_move.sides import LOCK_SECONDS, Row, Side
from agents.features.operations.database_move.tables import Column, Table
from agents.features.operations.database_move.values import BadValue, StoredText
from agents.settings import DiskSettings

_ENDS = ("", "-wal", "-shm", "-journal")
_PART = ".moving-"
_GROWTH = 2
"""A target needs at most this number of times the size of the source, with its log."""


class SqliteSide(Side):
    """A SQLite file. A move has it alone: SQLite locks it for all other connections."""

    title = "SQLite"

    def __init__(self, alias: str, settings: dict[str, Any]) -> None:
        self.path = Path(str(settings["NAME"]))
        self._in_place = False
        super().__init__(alias, settings)
        self._open(self.path)

    def _open(self, path: Path) -> None:
        options = {
            "transaction_mode": "EXCLUSIVE",
            "timeout": LOCK_SECONDS,
            # Before the first access: then no other connection can open the file.
            "init_command": "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL;",
        }
        self._connect_with({**self.settings, "NAME": str(path), "OPTIONS": options})

    @property
    def name(self) -> str:
        return f"the SQLite database {self.path}"

    def identity(self) -> object:
        try:
            status = self.path.stat()
        except OSError:
            return None  # missing, or `examine` says what is wrong
        return (status.st_dev, status.st_ino)

    def table_names(self) -> set[str]:
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%%'")
            virtual = tuple(str(name) for (name,) in cursor.fetchall())
        return {name for name in super().table_names() if not name.startswith(virtual or ("\0",))}

    def rows(self, table: Table) -> Iterator[Row]:
        raw = self.connection.connection
        # `+` hides the declared type, for which Python would convert the value.
        columns = ", ".join(f"+{self.quoted(column.name)}" for column in table.columns)
        keys = ", ".join(self.quoted(table.columns[at].name) for at in table.key)
        raw.text_factory = StoredText
        try:
            for row in raw.execute(
                f"SELECT {columns} FROM {self.quoted(table.name)} ORDER BY {keys}"  # noqa: S608
            ):
                yield tuple(map(_read, table.columns, row))
        finally:
            raw.text_factory = str

    def counter(self, table: Table) -> int:
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table.name])
            found = cursor.fetchone()
        return int(found[0]) if found else 0

    # As the source ---------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        try:
            self.connection.ensure_connection()
            block = transaction.atomic(using=self.alias)
            block.__enter__()
        except OperationalError as error:
            if "locked" not in str(error):
                raise
            raise MoveRefused(
                f"Another process uses {self.path}{_holders(self.path)}. End it, then try again."
            ) from error
        try:
            yield
        finally:
            # Only a mark was written.
            transaction.set_rollback(not self._is_marked, using=self.alias)
            block.__exit__(None, None, None)

    def size(self) -> int:
        return sum(
            os.path.getsize(f"{self.path}{end}")
            for end in _ENDS
            if os.path.exists(f"{self.path}{end}")
        )

    # As the target ---------------------------------------------------------------------------

    def examine(self, tables: Sequence[Table], expected: set[tuple[str, str]], size: int) -> None:
        parent = self.path.parent
        if not self.path.is_absolute() or self.path.name in ("", ".", ".."):
            raise MoveRefused(
                "--to needs an absolute path, such as sqlite:////srv/vel/vel.sqlite3."
            )
        if self.path.is_dir():
            raise MoveRefused(f"{self.path} is a directory. Expected the path of a file.")
        if not parent.is_dir():
            raise MoveRefused(f"The directory {parent} does not exist. Create it first.")
        if self.path.is_symlink():
            raise MoveRefused(f"{self.path} is a link. Name the file itself.")
        if not os.access(parent, os.W_OK | os.X_OK, effective_ids=True):
            raise MoveRefused(
                f"This account has no permission to write in {parent}. Change its owner, or name "
                "another file."
            )
        if self.path.exists() and self.path.stat().st_size:
            self._examine_file(tables, expected)
            self._in_place = True
        free = shutil.disk_usage(parent).free
        needed = size * _GROWTH + DiskSettings.now().RESERVE_BYTES
        if free < needed:
            raise MoveRefused(
                f"The disk of {parent} has {free // 1_000_000:,} MB left, and the move needs up to "
                f"{needed // 1_000_000:,} MB. Make room, or name a file on another disk."
            )

    def _examine_file(self, tables: Sequence[Table], expected: set[tuple[str, str]]) -> None:
        try:
            self._refuse_rows(tables, expected)
        except OperationalError as error:
            if "locked" not in str(error):
                raise
            raise MoveRefused(
                f"Another process uses {self.path}{_holders(self.path)}. End it, then try again."
            ) from error
        except DatabaseError as error:
            raise MoveRefused(
                f"{self.path} exists and is no SQLite database. Name another file."
            ) from error

    @contextmanager
    def completing(self) -> Iterator[None]:
        with transaction.atomic(using=self.alias):
            yield
        self.connection.close()
        # A killed move may have left the other name of its complete file.
        for other in self.path.parent.glob(f"{glob.escape(self.path.name)}{_PART}*"):
            if other.samefile(self.path):
                other.unlink()

    @contextmanager
    def writing(self, tables: Sequence[Table], expected: set[tuple[str, str]]) -> Iterator[None]:
        if self._in_place:
            with transaction.atomic(using=self.alias):
                self._refuse_rows(tables, expected)
                self._clear_made_rows()
                yield
            return
        self.connection.close()
        part = self.path.with_name(f"{self.path.name}{_PART}{secrets.token_hex(4)}")
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            self._open(part)
            self._migrate()
            with transaction.atomic(using=self.alias):
                self._clear_made_rows()
                yield
            with self.connection.cursor() as cursor:
                # The mode of Vel's own connections. The file keeps it.
                cursor.execute("PRAGMA journal_mode=WAL")
            self.connection.close()
            _put(part, self.path)
        finally:
            self.connection.close()
            for end in _ENDS:
                with suppress(FileNotFoundError):
                    os.unlink(f"{part}{end}")

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        names = ", ".join(self.quoted(column.name) for column in table.columns)
        places = ", ".join("?" for _ in table.columns)
        statement = f"INSERT INTO {self.quoted(table.name)} ({names}) VALUES ({places})"  # noqa: S608
        convert = [column.kind.to_sqlite for column in table.columns]
        raw = self.connection.connection
        remaining = iter(rows)
        while batch := list(islice(remaining, table.batch)):
            with self.connection.wrap_database_errors:
                raw.executemany(
                    statement,
                    [
                        tuple(
                            None if value is None else to(value)
                            for to, value in zip(convert, row, strict=True)
                        )
                        for row in batch
                    ],
                )

    def set_counter(self, table: Table, value: int) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table.name])
            cursor.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table.name, value]
            )

    def check_references(self) -> None:
        try:
            self.connection.check_constraints()
        except IntegrityError as error:
            raise MoveRefused(f"A row refers to a row that does not exist: {error}") from error


def _read(column: Column, stored: Any) -> Any:
    if stored is None:
        return None
    try:
        return column.kind.from_sqlite(stored)
    except BadValue as problem:
        return problem


def _put(part: Path, place: Path) -> None:
    """Give the complete file its name. A file that appeared there meanwhile is not replaced."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if place.exists() and place.stat().st_size == 0:
        os.replace(part, place)
    else:
        try:
            os.link(part, place)
        except FileExistsError:
            raise MoveRefused(f"Another process has created {place} meanwhile.") from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
                raise
            os.rename(part, place)  # a file system without hard links
    directory = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _holders(path: Path) -> str:
    """Return the processes that have the file open, as far as this account sees them."""
    found = []
    real = os.path.realpath(path)
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        if int(process.name) == os.getpid():
            continue
        try:
            files = {os.readlink(each) for each in (process / "fd").iterdir()}
            command = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
        except OSError:
            continue  # it has ended, or belongs to another account
        if files & {f"{real}{end}" for end in _ENDS}:
            found.append(f"process {process.name} ({one_line(command, 60)})")
    return f": {', '.join(found)}" if found else ""
