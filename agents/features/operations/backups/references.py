"""The files that rows of the database name: a backup must contain all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from agents.features.operations.backups.errors import BackupRefused
from sandbox.snapshots.manifest import Manifest

QUERIES = (
    "SELECT DISTINCT thread_id, manifest FROM agents_workspacesnapshot WHERE manifest <> ''",
    "SELECT DISTINCT thread_id, base FROM agents_workspacesnapshot WHERE base <> ''",
)
Rows = Callable[[str], Iterable[tuple[Any, ...]]]


def named_states(rows: Rows) -> set[tuple[str, str]]:
    """Return (thread, state) for each state of files that a row names."""
    return {(str(thread), str(state)) for query in QUERIES for thread, state in rows(query)}


def path_of(thread: str, state: str) -> str:
    return f"snapshots/{thread}/manifests/{state}"


def missing_files(
    states: Iterable[tuple[str, str]],
    present: Collection[str],
    read: Callable[[str], bytes],
) -> Iterator[str]:
    """Yield the paths that the states need and that are not present.

    Args:
        states: The result of `named_states`.
        present: The paths in the backup.
        read: Returns the content of a file in the backup.

    Raises:
        BackupRefused: The list of a state's files is damaged.
    """
    for thread, state in sorted(states):
        place = path_of(thread, state)
        if place not in present:
            yield place
            continue
        try:
            found = Manifest.unpacked(read(place))
        except ValueError:
            raise BackupRefused(f"{place} in the backup is damaged. Use another backup.") from None
        for content in sorted(found.contents()):
            needed = f"snapshots/{thread}/objects/{content[:2]}/{content[2:]}"
            if needed not in present:
                yield needed
