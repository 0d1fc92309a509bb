"""Restore a backup: into scratch places, checked and made safe there, then renamed into place."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import sqlite3 as sqlite_library
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
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
from agents.features.operations.backups.swap import (
    NOTHING,
    FileJournal,
    Journal,
    Rename,
    planned,
    swap,
)
from agents.features.operations.backups.target_postgresql import PostgresqlTarget
from agents.features.operations.backups.unfinished import only_restore, undo_unfinished
from agents.features.operations.database_move.errors import MoveRefused
from agents.features.operations.database_move.quiet import refuse_active
from agents.features.operations.database_move.sqlite import SqliteSide, _holders
from agents.features.operations.owner import give_to_owner
from agents.settings import DataSettings
from agents.settings.data import sqlite_database

KEPT = "before-restore-"
_PART = ".restoring-"
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

    If an earlier restore was interrupted, this puts the installation before it back first.

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
    with only_restore():
        undo_restore(say)
        try:
            return _restore(opened, replace=replace, revoke_tokens=revoke_tokens, say=say)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise BackupRefused(
                f"The disk of {DataSettings.now().DATA_DIR} became full during the restore. Make "
                "room, or use another disk. Everything is as before."
            ) from error


def undo_restore(say: Say) -> bool:
    """Put the installation before an interrupted restore back. Return whether there was one.

    Call it in `only_restore`. Raises `BackupRefused`.
    """
    was_interrupted = undo_unfinished(say)
    settings = connections[DEFAULT_DB_ALIAS].settings_dict
    if settings["ENGINE"] == "django.db.backends.sqlite3":
        _SqliteTarget(settings, "").remove_remains()
    return was_interrupted


def _restore(opened: Opened, *, replace: bool, revoke_tokens: bool, say: Say) -> Restored:
    manifest = opened.manifest
    settings = connections[DEFAULT_DB_ALIAS].settings_dict
    data = DataSettings.now().DATA_DIR
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    is_file = manifest.database.engine == sqlite.ENGINE
    target = _SqliteTarget(settings, stamp) if is_file else PostgresqlTarget(stamp)
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
        aside = data / f"{KEPT}{stamp}"
        renames = [
            each for area in AREAS for each in planned(tree.path / area, data / area, aside / area)
        ]
        notes: list[str] = []
        if opened.keys is not None:
            notes = _plan_keys(renames, opened.keys, data, scratch, aside)
        renames += target.renames()
        swap(renames, target.journal(data))
        kept = [str(aside)] if aside.exists() else []
        return Restored(manifest.name, reviewed, [*kept, *target.kept()], notes)


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


def _plan_keys(
    renames: list[Rename], keys: Keys, data: Path, scratch: Path, aside: Path
) -> list[str]:
    """Add the files with the secret key and with other keys. Return notes for the person."""
    notes = []
    present = present_keys()

    def add(name: str, text: str) -> None:
        _write_private(scratch / name, text)
        renames.extend(planned(scratch / name, data / name, aside / name))

    if present.secret_key != keys.secret_key:
        add(_KEY_FILE, keys.secret_key)
        if os.environ.get("VEL_SECRET_KEY", "").strip():
            notes.append(
                f"VEL_SECRET_KEY is set to another key than {data / _KEY_FILE}, and wins: unset it"
            )
    if keys.stored_secrets and present.stored_secrets != keys.stored_secrets:
        add(_OTHER_KEYS, f"VEL_SECRET_KEYS={','.join(keys.stored_secrets)}\n")
        notes.append(f"set VEL_SECRET_KEYS as in {data / _OTHER_KEYS}, then delete that file")
    return notes


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(force_str(text))
        file.flush()
        give_to_owner(file.fileno())
        os.fsync(file.fileno())


class _SqliteTarget:
    """The SQLite file of DATABASE_URL."""

    def __init__(self, settings: dict[str, Any], stamp: str) -> None:
        self._settings = settings
        self._file = Path(str(settings["NAME"]))
        self._part = self._file.with_name(f"{self._file.name}{_PART}{secrets.token_hex(4)}")
        self._old = self._file.with_name(f"{self._file.name}.{KEPT}{stamp}")

    def places(self) -> list[Path]:
        return [self._file.parent]

    def remove_remains(self) -> None:
        """Delete the databases that killed restores have left."""
        for path in self._file.parent.glob(f"{glob.escape(self._file.name)}{_PART}*"):
            path.unlink()

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

    def renames(self) -> list[Rename]:
        """Return the renames that keep the old file, and give the new one its name.

        Raises:
            BackupRefused: Another process has opened the old file meanwhile.
        """
        if others := _holders(self._file):
            raise BackupRefused(
                f"Another process has opened {self._file} during the restore{others}. Stop Vel, a "
                "service with its socket, then try again."
            )
        files = [(Path(f"{self._file}{end}"), Path(f"{self._old}{end}")) for end in sqlite.ENDS]
        (file, old), *beside = files
        # The log of the old file first: SQLite would use it for the new file.
        return [
            *(each for place, kept in beside for each in planned(NOTHING, place, kept)),
            *planned(self._part, file, old),
        ]

    def journal(self, data: Path) -> Journal:
        return FileJournal(data)

    def kept(self) -> list[str]:
        return [str(self._old)] if self._old.exists() else []


def _settle(file: Path) -> None:
    """Bring everything into the file itself, for the account of Vel, and onto the disk."""
    with closing(sqlite_library.connect(file)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
    descriptor = os.open(file, os.O_RDONLY)
    try:
        give_to_owner(descriptor)
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
