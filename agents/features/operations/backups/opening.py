"""Open a backup: decide whether to believe its manifest, and unpack its contents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agents.features.operations.backups import postgresql, sqlite
from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.keys import Keys, open_keys, present_keys
from agents.features.operations.backups.manifest import Manifest, StoredFile, TableContent
from agents.features.operations.backups.objects import Packed, unpack
from agents.features.operations.backups.references import Rows, missing_files, named_states
from agents.features.operations.backups.repository import Repository
from agents.features.operations.backups.scratch_tree import ScratchTree
from agents.settings import DiskSettings
from sandbox.snapshots.manifest import MAX_ENCODED_BYTES


@dataclass(frozen=True, slots=True)
class Opened:
    """A backup whose manifest is believed.

    `keys` are those in it, if a passphrase opened them. `is_signed` is false if a person has
    accepted it without a known signature.
    """

    repository: Repository
    manifest: Manifest
    keys: Keys | None = None
    is_signed: bool = True


def open_backup(
    repository: Repository,
    name: str,
    *,
    passphrase: str | None = None,
    accept_unsigned: bool = False,
) -> Opened:
    """Check the signature of a backup, then all fields of its manifest.

    The signing key is that of this installation, or the one in the backup if the passphrase opens
    it.

    Args:
        repository: Where the backup is.
        name: Its name, or "latest".
        passphrase: The passphrase of the keys in the backup.
        accept_unsigned: Believe a backup that no known key has signed. A changed backup of this
            installation is refused all the same.

    Raises:
        BackupRefused: The backup is missing, was changed, comes from another installation or is
            damaged, or the passphrase is wrong.
    """
    unread = repository.manifest(repository.find(name))
    sealed = unread.keys()
    keys = None
    if passphrase is not None:
        if sealed is None:
            raise BackupRefused(
                f"The backup {unread.name} contains no keys, so it needs no passphrase. Leave it "
                "out. `vel backup create --include-keys` adds the keys."
            )
        keys = open_keys(sealed, passphrase, unread.name)
    own = present_keys().signing
    if unread.is_signed_with((*own, *(keys.signing if keys else ()))):
        return Opened(repository, unread.accept(), keys)
    if keys is not None or unread.names_key_of(own):
        raise BackupRefused(
            f"The manifest of {unread.name} was changed after the backup was made. Use another "
            "backup, and find out who can write to the storage of the backups."
        )
    if accept_unsigned:
        return Opened(repository, unread.accept(), is_signed=False)
    advice = "give the passphrase of its keys" if sealed else "set VEL_SECRET_KEY to its secret key"
    raise BackupRefused(
        f"The backup {unread.name} is not signed with the key of this installation. If it comes "
        f"from another one, {advice}. If you trust everybody who can write to "
        f"{repository.name}, add --accept-unsigned."
    )


def unpack_files(opened: Opened, tree: ScratchTree) -> None:
    """Write all files of the backup below the scratch directory. Raises `BackupRefused`."""
    manifest = opened.manifest
    tree.make_directories(manifest.directories)
    for each in manifest.files:
        with tree.new_file(each) as file:
            _unpack(opened, Packed(each.sha256, each.size), file)
    tree.finish(manifest.directories)


def unpack_database(opened: Opened, target: Path) -> None:
    """Write the copy of the database to the new file `target`.

    Raises `BackupRefused`, and `OSError` if `target` exists or cannot be written.
    """
    database = opened.manifest.database
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        _unpack(opened, Packed(database.sha256, database.size), file)
        file.flush()
        os.fsync(descriptor)


def _unpack(opened: Opened, expected: Packed, file: BinaryIO) -> None:
    with opened.repository.open(expected.sha256) as source:
        unpack(source, expected, file.write)


def check_sqlite(opened: Opened, file: Path) -> None:
    """Compare a restored file with the manifest.

    Raises `BackupRefused` for a damaged file, for a difference, and if a row names a file that the
    backup lacks.
    """
    with sqlite.reading(file) as database:
        sqlite.check_integrity(database)
        compare_tables(opened.manifest.database.tables, sqlite.contents(database))
        check_references(opened, lambda query: database.execute(query).fetchall())


def check_postgresql(opened: Opened, server: postgresql.PostgresqlServer) -> None:
    """Compare a restored database with the manifest.

    Raises `BackupRefused` for a difference, and if a row names a file that the backup lacks.
    """
    with postgresql.one_moment(server) as connection:
        compare_tables(opened.manifest.database.tables, postgresql.contents(connection))
        check_references(opened, lambda query: connection.execute(query.encode()).fetchall())


def compare_tables(expected: dict[str, TableContent], found: dict[str, TableContent]) -> None:
    """Raise `BackupRefused` if a table is missing, added, or has other rows."""
    for name in sorted(expected.keys() | found.keys()):
        before, after = expected.get(name), found.get(name)
        if before is None or after is None:
            what = "missing in the restored database" if after is None else "not in the manifest"
            raise BackupRefused(f"The table {name} is {what}. Use another backup.")
        if before != after:
            raise BackupRefused(
                f"The table {name} differs after the restore: {before.rows:,} rows with the hash "
                f"{before.sha256[:12]} in the manifest, {after.rows:,} with {after.sha256[:12]} "
                "now. Use another backup."
            )


def check_references(opened: Opened, rows: Rows) -> None:
    """Raise `BackupRefused` if a row names a file that the backup lacks."""
    manifest = opened.manifest
    files = {each.path: each for each in manifest.files}
    known = set(manifest.missing)
    for path in missing_files(named_states(rows), files, lambda place: _read(opened, files[place])):
        if path not in known:
            raise BackupRefused(f"The backup lacks {path}, which a row names. Use another backup.")


def _read(opened: Opened, file: StoredFile) -> bytes:
    if file.size > MAX_ENCODED_BYTES:
        raise ValueError(f"{file.path} is larger than the list of a state's files can be")
    parts: list[bytes] = []
    with opened.repository.open(file.sha256) as source:
        unpack(source, Packed(file.sha256, file.size), parts.append)
    return b"".join(parts)


def require_room(opened: Opened, places: Iterable[Path], times: int = 1) -> None:
    """Raise `BackupRefused` unless each place has room for `times` copies of the backup's contents.

    The reserve (`VEL_RESERVE_BYTES`) must remain free.
    """
    manifest = opened.manifest
    size = times * (manifest.file_bytes + manifest.database.size)
    needed = size + DiskSettings.now().RESERVE_BYTES
    for place in places:
        status = os.statvfs(place)
        free = status.f_bavail * status.f_frsize
        if free < needed:
            raise BackupRefused(
                f"The disk of {place} has {free // 1_000_000:,} MB left, and the backup needs "
                f"{needed // 1_000_000:,} MB. Make room, or use another disk."
            )


Say = Callable[[str], None]
