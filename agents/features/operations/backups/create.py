"""Make a backup: the database as of one moment, then the files that it names, then the rest."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from io import FileIO
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.migrations.recorder import MigrationRecorder

from agents.features.operations.backups import postgresql, sqlite
from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.keys import Keys, present_keys, seal_keys
from agents.features.operations.backups.manifest import (
    Manifest,
    StoredDatabase,
    StoredFile,
    TableContent,
)
from agents.features.operations.backups.objects import Packed, pack, unpack
from agents.features.operations.backups.references import missing_files, named_states
from agents.features.operations.backups.repository import Repository
from agents.features.operations.backups.scratch_tree import scratch_directory
from agents.features.operations.backups.source_tree import FoundFile, SourceTree
from agents.features.operations.backups.status import data_directory_name
from agents.features.operations.starting import unfinished_restore
from agents.settings import DataSettings, DiskSettings, MachineSettings

_TRIES = 5
"""Vel deletes old states of files while a backup reads them. Then it starts again."""
_READ_TRIES = 3
_SETTLED_NS = 2_000_000_000
"""A file that changed this short before a backup may have changed again at the same time stamp."""


@dataclass(slots=True)
class Made:
    """A finished backup. `new_objects` were added to the repository.

    `new_bytes` is their size in bytes, compressed. `notes` are lines for people, for example about
    files that were left out.
    """

    name: str
    manifest: Manifest
    new_objects: int = 0
    new_bytes: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _DatabaseCopy:
    file: Path
    engine: str
    version: str
    tables: dict[str, TableContent]
    migrations: list[tuple[str, str]]
    states: set[tuple[str, str]]


def create_backup(
    repository: Repository, *, passphrase: str | None = None, say: Callable[[str], None]
) -> Made:
    """Make a backup while Vel runs.

    Args:
        repository: Where to store it.
        passphrase: With a passphrase, the backup contains the keys of the installation.
        say: Called with a line for each step.

    Raises:
        BackupRefused: No backup was made. The next one uses the objects that were stored already.
    """
    if reason := unfinished_restore():
        raise BackupRefused(reason)
    if MigrationRecorder.Migration._meta.db_table not in connection.introspection.table_names():
        raise BackupRefused(
            "There is nothing to back up: the database has no tables yet. Vel makes them at its "
            "first start."
        )
    now = datetime.now(UTC)
    # The microseconds in hex: names sort by time.
    name = f"{now:%Y%m%dT%H%M%SZ}-{now.microsecond:05x}{secrets.token_hex(2)[:3]}"
    keys = present_keys()
    sealed = seal_keys(keys, passphrase, name) if passphrase is not None else None
    repository.prepare()
    with repository.shared(), scratch_directory(DataSettings.now().DATA_DIR) as scratch:
        writer = _Writer(repository, scratch, _last_files(repository, keys))
        copy, tree, files, missing = _consistent(writer, scratch, say)
        say("storing the database")
        with copy.file.open("rb") as opened:
            packed = writer.store(opened.read)
        manifest = Manifest(
            name=name,
            created_at=now.isoformat(timespec="seconds"),
            vel=vel_version(),
            database=StoredDatabase(
                copy.engine,
                copy.version,
                packed.sha256,
                packed.size,
                copy.tables,
                copy.migrations,
            ),
            files=sorted(files.values(), key=lambda each: each.path),
            directories=sorted(tree.directories, key=lambda each: each.path),
            skipped=tree.skipped,
            missing=missing,
            keys=sealed,
            data_directory=data_directory_name(),
        )
        repository.keep_manifest(name, manifest.signed(keys.secret_key))
    made = Made(name, manifest, writer.new_objects, writer.new_bytes)
    made.notes.extend(_notes(manifest))
    return made


def vel_version() -> str:
    try:
        return version("vel")
    except PackageNotFoundError:
        return "unknown"


def _notes(manifest: Manifest) -> Iterable[str]:
    for reason, count in sorted(manifest.skipped.items()):
        yield f"left out {count:,} names: {reason}"
    if manifest.missing and not MachineSettings.now().pins_threads:
        yield (
            f"{len(manifest.missing):,} files were lost before this backup, for example "
            f"{manifest.missing[0]}"
        )
    if MachineSettings.now().pins_threads:
        yield "files of threads on other hosts are not in this backup: run it on each host"


def _consistent(
    writer: _Writer, scratch: Path, say: Callable[[str], None]
) -> tuple[_DatabaseCopy, SourceTree, dict[str, StoredFile], list[str]]:
    """Copy the database and the files, again if files that rows name were deleted meanwhile."""
    before: set[str] = set()
    for attempt in range(_TRIES):
        say("copying the database" if attempt == 0 else "copying again: files were deleted")
        copy = _copy_database(scratch, attempt)
        say("storing the files")
        tree = SourceTree(DataSettings.now().DATA_DIR)
        files = {each.path: each for found in tree.files() if (each := writer.add(tree, found))}
        missing = set(missing_files(copy.states, files, partial(_read_one, writer, files)))
        # A file that is missing twice in a row was lost earlier. Rows are deleted before files.
        # With several hosts, the files of the others are missing here.
        if missing <= before or MachineSettings.now().pins_threads:
            return copy, tree, files, sorted(missing)
        before = missing
        copy.file.unlink()
    raise BackupRefused(
        "Vel deleted files faster than they could be read. Try again when `vel prune` has ended."
    )


def _read_one(writer: _Writer, files: dict[str, StoredFile], path: str) -> bytes:
    return writer.read(files[path])


def _copy_database(scratch: Path, attempt: int) -> _DatabaseCopy:
    target = scratch / f"database-{attempt}"
    settings = connections[DEFAULT_DB_ALIAS].settings_dict
    if settings["ENGINE"] == "django.db.backends.sqlite3":
        source = Path(str(settings["NAME"]))
        _require_room(scratch, source)
        sqlite.copy_sqlite(source, target)
        with sqlite.reading(target) as database:
            rows = lambda query: database.execute(query).fetchall()  # noqa: E731
            return _DatabaseCopy(
                target,
                sqlite.ENGINE,
                sqlite.version(),
                sqlite.contents(database),
                _migrations(rows),
                named_states(rows),
            )
    if settings["ENGINE"] != "django.db.backends.postgresql":
        raise BackupRefused("Only databases in SQLite or PostgreSQL can be backed up.")
    server = postgresql.PostgresqlServer()
    with postgresql.one_moment(server) as connection:
        postgresql.dump(server, connection, target)
        ask = lambda query: connection.execute(query.encode()).fetchall()  # noqa: E731
        return _DatabaseCopy(
            target,
            postgresql.ENGINE,
            postgresql.version(connection),
            postgresql.contents(connection),
            _migrations(ask),
            named_states(ask),
        )


def _migrations(rows: Callable[[str], Iterable[tuple[object, ...]]]) -> list[tuple[str, str]]:
    found = rows("SELECT app, name FROM django_migrations")
    return sorted((str(app), str(name)) for app, name in found)


def _require_room(scratch: Path, source: Path) -> None:
    with suppress(FileNotFoundError):
        # The copy, and its compressed form.
        needed = 2 * source.stat().st_size + DiskSettings.now().RESERVE_BYTES
        status = os.statvfs(scratch)
        free = status.f_bavail * status.f_frsize
        if free < needed:
            raise BackupRefused(
                f"The disk of {scratch.parent} has {free // 1_000_000:,} MB left, and the backup "
                f"needs up to {needed // 1_000_000:,} MB. Make room."
            )


def _last_files(repository: Repository, keys: Keys) -> dict[str, StoredFile]:
    """Return the files of the last backup of this data directory, by path."""
    own = ("", data_directory_name())
    for name in reversed(repository.names()):
        try:
            unread = repository.manifest(name)
            if unread.data_directory in own and unread.is_signed_with(keys.signing):
                return {each.path: each for each in unread.accept().files}
        except BackupRefused:
            continue  # it is damaged: `verify` says so, and a new backup needs it for nothing
    return {}


class _Writer:
    """Stores contents, each once."""

    def __init__(self, repository: Repository, scratch: Path, last: dict[str, StoredFile]) -> None:
        self._repository = repository
        self._scratch = scratch
        self._last = last
        self._present = set(repository.digests())
        self.new_objects = 0
        self.new_bytes = 0

    def store(self, read: Callable[[int], bytes]) -> Packed:
        """Store everything that `read` returns, unless the repository has it."""
        try:
            with tempfile.TemporaryFile(dir=self._scratch) as file:
                packed = pack(read, file)
                if packed.sha256 not in self._present:
                    size = file.tell()
                    file.seek(0)
                    self._repository.keep(file, packed.sha256)
                    self._present.add(packed.sha256)
                    self.new_objects += 1
                    self.new_bytes += size
                return packed
        except OSError as error:
            # Otherwise, the callers would count it as a file that cannot be backed up.
            raise BackupRefused(
                f"A file in {self._scratch.parent} cannot be copied: {error.strerror or error}. "
                "If the disk is full, make room. Then try again."
            ) from error

    def add(self, tree: SourceTree, found: FoundFile) -> StoredFile | None:
        """Store a file, and return it; None if it was deleted or cannot be read."""
        known = self._last.get(found.path)
        if (
            known is not None
            and known.sha256 in self._present
            and known.stamp == _stamp(found.status)
        ):
            return _stored(found.path, found.status, Packed(known.sha256, known.size), known.stamp)
        try:
            for _ in range(_READ_TRIES):
                descriptor = tree.open(found.path)
                with os.fdopen(descriptor, "rb", buffering=0) as file:
                    before = os.fstat(descriptor)
                    packed = self.store(partial(_block, file))
                    after = os.fstat(descriptor)
                if _stamp(before) == _stamp(after):
                    break
        except FileNotFoundError:
            return None
        except PermissionError:
            tree.skip("no permission")
            return None
        except OSError as error:
            tree.skip_replaced(found.path, error)
            return None
        settled = after.st_ctime_ns + _SETTLED_NS < datetime.now(UTC).timestamp() * 1e9
        return _stored(found.path, after, packed, _stamp(after) if settled else "")

    def read(self, file: StoredFile) -> bytes:
        """Return the stored content of a file."""
        parts: list[bytes] = []
        with self._repository.open(file.sha256) as opened:
            unpack(opened, Packed(file.sha256, file.size), parts.append)
        return b"".join(parts)


def _block(file: FileIO, size: int) -> bytes:
    return file.read(size) or b""


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def _stored(path: str, status: os.stat_result, packed: Packed, stamp: str) -> StoredFile:
    return StoredFile(
        path=path,
        size=packed.size,
        mode=status.st_mode & 0o777,
        uid=status.st_uid,
        gid=status.st_gid,
        sha256=packed.sha256,
        mtime_ns=max(0, status.st_mtime_ns),
        stamp=stamp,
    )
