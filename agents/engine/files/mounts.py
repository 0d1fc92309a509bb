"""The mounts of features, over the files of a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.kernel.mounts import mount_at, mounts
from sandbox.backends import CompositeBackend, SeenFiles
from sandbox.backends.protocol import FileBackend


def with_mounts(files: FileBackend, agent_id: str, call: Callable[..., Any]) -> FileBackend:
    """Return `files` with the mounts of features. `call` runs a transaction."""
    found = {mount.root: mount.files(agent_id, call) for mount in mounts()}
    return CompositeBackend(files, found) if found else files


class SeenOutsideMounts:
    """`seen` without the mounts: there, a proposal is based on a revision, not on read content."""

    def __init__(self, seen: SeenFiles) -> None:
        self._seen = seen

    def get(self, path: str) -> str | None:
        return self._seen.get(path) if mount_at(path) is None else None

    def put(self, path: str, content_hash: str | None) -> None:
        if mount_at(path) is None:
            self._seen.put(path, content_hash)
