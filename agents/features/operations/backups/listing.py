"""List the backups in a repository."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.keys import present_keys
from agents.features.operations.backups.repository import Repository


@dataclass(frozen=True, slots=True)
class Listed:
    """A backup. `problem` says why it cannot be used, or that its signature is unknown.

    `bytes` is the size of its contents, not compressed. A backup whose signature is unknown is not
    parsed, and has only `has_keys`.
    """

    name: str
    created_at: str = ""
    vel: str = ""
    engine: str = ""
    files: int = 0
    bytes: int = 0
    has_keys: bool = False
    is_signed: bool = False
    problem: str = ""


def list_backups(repository: Repository) -> Iterator[Listed]:
    """Yield all backups, the newest first. A damaged one has a problem."""
    secrets = present_keys().signing
    for name in reversed(repository.names()):
        try:
            unread = repository.manifest(name)
            if not unread.is_signed_with(secrets):
                problem = "not signed with the key of this installation"
                has_keys = unread.keys() is not None
                yield Listed(name, has_keys=has_keys, problem=problem)
                continue
            found = unread.accept()
        except BackupRefused as refused:
            yield Listed(name, problem=str(refused))
            continue
        yield Listed(
            name,
            found.created_at,
            found.vel,
            found.database.engine,
            len(found.files),
            found.file_bytes + found.database.size,
            found.keys is not None,
            True,
        )
