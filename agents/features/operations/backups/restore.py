"""Restore a backup: into scratch places, checked and made safe there, then renamed into place."""

from __future__ import annotations

import os
import secrets
import sqlite3 as sqlite_library
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.utils.encoding import force_str

from agents.doors.database_schema import missing_migrations, unknown_migrations
from agents.features.operations.backups import sqlite
from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.keys import Keys, present_keys
from agents.features.operations.backups.manifest import AREAS
from agents.features.operations.backups.opening import (
    Opened,
    Say,
    check_sqlite,
    require_room,
    unpack_database,
    unpack_files,
)
from agents.features.operations.backups.review import Reviewed, make_safe
from agents.features.operations.backups.scratch_tree import ScratchTree, scratch_directory
from agents.features.operations.backups.target_postgresql import PostgresqlTarget
from agents.features.operations.database_move.errors import MoveRefused
from agents.features.operations.database_move.quiet import refuse_active
from agents.features.operations.database_move.sqlite import SqliteSide, _holders
from agents.settings import DataSettings
from agents.settings.data import sqlite_database

KEPT = "before-restore-"
_KEY_FILE = "secret_key"
_OTHER_KEYS = "restored-keys.env"


@dataclass(slots=True)
class Restored:
    """A finished restore. `kept` are the places of the old installation."""

    name: str
    reviewed: Reviewed
    kept: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def restore_backup(opened: Opened, *, replace: bool, revoke_tokens: bool, say: Say) -> Restored:
    """Restore a backup into this installation (VEL_DATA_DIR, DATABASE_URL).

    Args:
        opened: The backup.
        replace: Whether an installation may be there. It is renamed and kept.
        revoke_tokens: Whether all API tokens become invalid.
        say: Called with a line for each step.

    Raises:
        BackupRefused: Everything is as before.
    """
    settings = connections[DEFAULT_DB_ALIAS].settings_dict
    engine = {
        "django.db.backends.sqlite3": "sqlite",
        "django.db.backends.postgresql": "postgresql",
    }.get(settings["ENGINE"])
    manifest = opened.manifest
    if engine != manifest.database.engine:
        raise BackupRefused(
            f"The backup {manifest.name} is of a {manifest.database.engine} database, and "
            f"DATABASE_URL names a {engine} database. Restore it into {manifest.database.engine}, "
            "then use `vel database move`."
        )
    _refuse_newer(opened)
    data = DataSettings.now().DATA_DIR
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    target = PostgresqlTarget(stamp) if engine == "postgresql" else _SqliteTarget(settings, stamp)
    if not replace:
        _refuse_files(data)
    with ExitStack() as stack:
        stack.enter_context(target.reserved(replace=replace))
        scratch = stack.enter_context(scratch_directory(data))
        tree = ScratchTree(scratch / "files")
        require_room(opened, [data, *target.places()])
        say("restoring the files")
        unpack_files(opened, tree)
        say("restoring the database")
        reviewed = stack.enter_context(
            target.filled(opened, scratch, lambda: _make_safe(opened, revoke_tokens))
        )
        say("putting everything in place")
        swap = _Swap(data, f"{KEPT}{stamp}")
        notes: list[str] = []
        with swap:
            for area in AREAS:
                swap.put(tree.path / area, data / area)
            if opened.keys is not None:
                notes = _put_keys(swap, opened.keys, data, scratch)
            kept = target.put()
        return Restored(manifest.name, reviewed, [*swap.kept(), *kept], notes)


def _refuse_newer(opened: Opened) -> None:
    """Raise `BackupRefused` if a newer version of Vel has made the database in the backup."""
    known = {config.label: Path(config.path) / "migrations" for config in apps.get_app_configs()}
    for app, name in opened.manifest.database.migrations:
        if app in known and not (known[app] / f"{name}.py").exists():
            raise BackupRefused(
                f"The backup {opened.manifest.name} is of Vel {opened.manifest.vel}, which has the "
                f"migration {app}.{name}. Install that version, or a later one."
            )


def _refuse_files(data: Path) -> None:
    for area in AREAS:
        place = data / area
        if place.is_dir() and any(os.scandir(place)):
            raise BackupRefused(
                f"This installation is not empty: {place} has files. Name an empty VEL_DATA_DIR, "
                "or add --replace to rename and keep the old installation."
            )


def _make_safe(opened: Opened, revoke_tokens: bool) -> Reviewed:
    """Bring the default database to the present schema, and hold its unfinished runs."""
    if unknown := unknown_migrations():
        raise BackupRefused(f"The database in the backup has the unknown migration {unknown[0]}.")
    if missing_migrations():
        try:
            call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
        except CommandError as error:
            raise BackupRefused(f"The database in the backup cannot be updated: {error}") from error
    manifest = opened.manifest
    return make_safe(manifest.name, manifest.created_at, revoke_tokens=revoke_tokens)


def _put_keys(swap: _Swap, keys: Keys, data: Path, scratch: Path) -> list[str]:
    """Put the secret key in place, and other keys into a file. Return notes for the person."""
    notes = []
    present = present_keys()
    if present.secret_key != keys.secret_key:
        _write_private(scratch / _KEY_FILE, keys.secret_key)
        swap.put(scratch / _KEY_FILE, data / _KEY_FILE)
        if os.environ.get("VEL_SECRET_KEY", "").strip():
            notes.append(
                f"VEL_SECRET_KEY is set to another key than {data / _KEY_FILE}, and wins: unset it"
            )
    if keys.stored_secrets and present.stored_secrets != keys.stored_secrets:
        lines = f"VEL_SECRET_KEYS={','.join(keys.stored_secrets)}\n"
        _write_private(scratch / _OTHER_KEYS, lines)
        swap.put(scratch / _OTHER_KEYS, data / _OTHER_KEYS)
        notes.append(f"set VEL_SECRET_KEYS as in {data / _OTHER_KEYS}, then delete that file")
    return notes


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(force_str(text))
        file.flush()
        os.fsync(file.fileno())


class _Swap:
    """Renames, all of which are undone if the block fails."""

    def __init__(self, data: Path, kept: str) -> None:
        self._kept = data / kept
        self._done: list[tuple[Path, Path]] = []

    def __enter__(self) -> None:
        return None

    def put(self, new: Path, place: Path) -> None:
        """Keep the present entry at `place`, and rename `new` to it, if that exists."""
        if place.is_symlink() or place.exists():
            self._kept.mkdir(mode=0o700, exist_ok=True)
            self._rename(place, self._kept / place.name)
        if new.exists():
            self._rename(new, place)

    def _rename(self, source: Path, target: Path) -> None:
        os.rename(source, target)
        self._done.append((source, target))

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            return
        for source, target in reversed(self._done):
            os.rename(target, source)
        with suppress(FileNotFoundError):
            os.rmdir(self._kept)
        self._done.clear()

    def kept(self) -> list[str]:
        return [str(self._kept)] if self._kept.exists() else []


class _SqliteTarget:
    """The SQLite file of DATABASE_URL."""

    def __init__(self, settings: dict[str, Any], stamp: str) -> None:
        self._settings = settings
        self._file = Path(str(settings["NAME"]))
        self._part = self._file.with_name(f"{self._file.name}.restoring-{secrets.token_hex(4)}")
        self._old = self._file.with_name(f"{self._file.name}.{KEPT}{stamp}")

    def places(self) -> list[Path]:
        return [self._file.parent]

    @contextmanager
    def reserved(self, *, replace: bool) -> Iterator[None]:
        """Check that the old database may be replaced, and that no process uses it."""
        connections[DEFAULT_DB_ALIAS].close()
        if not self._file.parent.is_dir():
            raise BackupRefused(f"The directory {self._file.parent} does not exist. Create it.")
        if self._file.is_symlink():
            raise BackupRefused(f"{self._file} is a link. Name the file itself in DATABASE_URL.")
        if self._file.exists() and self._file.stat().st_size:
            try:
                self._refuse_used(replace=replace)
            except MoveRefused as refused:
                raise BackupRefused(str(refused)) from refused
        yield

    def _refuse_used(self, *, replace: bool) -> None:
        if others := _holders(self._file):
            raise BackupRefused(f"Another process uses {self._file}{others}. Stop Vel first.")
        with closing(SqliteSide("restore_old", {**self._settings})) as side:
            try:
                with side.locked():
                    tables = side.table_names()
                    if "agents_serverprocess" in tables:
                        refuse_active(side.alias)
                    is_used = any(
                        side.has_rows(name)
                        for name in ("agents_run", "agents_agent", "auth_user")
                        if name in tables
                    ) or (tables and "agents_run" not in tables)
            except DatabaseError as error:
                if not replace:
                    raise BackupRefused(
                        f"{self._file} exists and cannot be read: {error}. Add --replace to "
                        "rename and keep it."
                    ) from error
                return
        if is_used and not replace:
            raise BackupRefused(
                f"This installation is not empty: the database {self._file} has rows. Name a new "
                "one in DATABASE_URL, or add --replace to rename and keep the old installation."
            )

    @contextmanager
    def filled(self, opened: Opened, scratch: Path, make: Any) -> Iterator[Reviewed]:
        """Restore the database beside its place, check it and make it safe."""
        try:
            unpack_database(opened, self._part)
            check_sqlite(opened, self._part)
            with _as_default(sqlite_database(self._part)):
                reviewed: Reviewed = make()
            _settle(self._part)
            yield reviewed
        finally:
            for end in sqlite.ENDS:
                Path(f"{self._part}{end}").unlink(missing_ok=True)

    def put(self) -> list[str]:
        """Keep the old file, and give the new one its name. Return the place of the old one."""
        moved = []
        try:
            for end in sqlite.ENDS:
                if os.path.exists(f"{self._file}{end}"):
                    os.rename(f"{self._file}{end}", f"{self._old}{end}")
                    moved.append(end)
            os.rename(self._part, self._file)
        except BaseException:
            for end in moved:
                os.rename(f"{self._old}{end}", f"{self._file}{end}")
            raise
        return [str(self._old)] if moved else []


def _settle(file: Path) -> None:
    """Bring everything into the file itself, and onto the disk."""
    with closing(sqlite_library.connect(file)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _as_default(settings: dict[str, Any]) -> Iterator[None]:
    """Let Django's default database be another one until the end of the block."""
    usual = connections.settings[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS].close()
    found = connections.configure_settings({DEFAULT_DB_ALIAS: settings})
    connections.settings[DEFAULT_DB_ALIAS] = found[DEFAULT_DB_ALIAS]
    del connections[DEFAULT_DB_ALIAS]
    ContentType.objects.clear_cache()
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS].close()
        connections.settings[DEFAULT_DB_ALIAS] = usual
        del connections[DEFAULT_DB_ALIAS]
        ContentType.objects.clear_cache()
