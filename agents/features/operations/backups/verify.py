"""Check a backup: restore it into a scratch directory, and compare counts and hashes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from agents.features.operations.backups import postgresql, sqlite
from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.opening import (
    Opened,
    Say,
    check_postgresql,
    check_sqlite,
    require_room,
    unpack_database,
    unpack_files,
)
from agents.features.operations.backups.scratch_tree import ScratchTree, scratch_directory
from agents.features.operations.backups.source_tree import SourceTree
from agents.settings import DataSettings


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared."""

    name: str
    files: int
    bytes: int
    tables: int
    rows: int


def verify_backup(opened: Opened, say: Say, scratch: Path | None = None) -> Verified:
    """Restore the backup into a scratch directory, compare it, and delete the directory.

    A backup of PostgreSQL is restored into a scratch database on the server of Vel.

    Args:
        opened: The backup.
        say: Called with a line for each step.
        scratch: A directory on a disk with room. By default, the data directory.

    Raises:
        BackupRefused: The backup cannot be restored.
    """
    base = scratch or DataSettings.now().DATA_DIR
    with scratch_directory(base) as place, _scratch_database(opened) as server:
        require_room(opened, [place])
        say("restoring the files")
        tree = ScratchTree(place / "files")
        unpack_files(opened, tree)
        _compare_files(opened, tree.path)
        say("restoring the database")
        file = place / "database"
        unpack_database(opened, file)
        if server is None:
            check_sqlite(opened, file)
        else:
            postgresql.load(server, file)
            check_postgresql(opened, server)
    tables = opened.manifest.database.tables
    return Verified(
        opened.manifest.name,
        len(opened.manifest.files),
        opened.manifest.file_bytes,
        len(tables),
        sum(each.rows for each in tables.values()),
    )


def _compare_files(opened: Opened, directory: Path) -> None:
    found = {each.path: each.status for each in SourceTree(directory).files()}
    for each in opened.manifest.files:
        status = found.pop(each.path, None)
        if status is None or status.st_size != each.size:
            raise BackupRefused(f"{each.path!a} cannot be restored. Use another backup.")
    if found:
        raise BackupRefused("The restored files differ from the manifest. Use another backup.")


@contextmanager
def _scratch_database(opened: Opened) -> Iterator[postgresql.PostgresqlServer | None]:
    """Create an empty database on the server of Vel, and delete it at the end.

    Yields None for a backup of SQLite.
    """
    if opened.manifest.database.engine == sqlite.ENGINE:
        yield None
        return
    name = f"vel_verify_{secrets.token_hex(4)}"
    with postgresql.PostgresqlServer().connect(autocommit=True) as server:
        try:
            server.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                    sql.Identifier(name)
                )
            )
        except psycopg.errors.InsufficientPrivilege as error:
            role = sql.Identifier(server.info.user).as_string(server)
            raise BackupRefused(
                f"The role {role} of DATABASE_URL may not create a scratch database. As an "
                f"administrator of the server, run: ALTER ROLE {role} CREATEDB; Or set "
                "DATABASE_URL for this command to a role or a server where it may: the check "
                "changes no other database."
            ) from error
        try:
            yield postgresql.PostgresqlServer(dbname=name)
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
