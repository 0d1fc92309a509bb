"""An agent's memory below /memory, for the file tools: read-only, asked for when it is read.

What writes there is an edit of the memory, which never comes this far. If it did it would fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memory.paths import MOUNT, InvalidPath
from memory.queries.tree import list_memory_entries, memory_state
from sandbox.backends import CompositeBackend, ReadOnly, SeenFiles, StateFilesystemBackend
from sandbox.backends.protocol import FileBackend
from sandbox.backends.state import StoredFile
from sandbox.errors import ReadOnlyPath
from sandbox.paths import is_within

_ADVICE = "the memory, which only a decision of a person changes. Propose it with write_memory."


def with_memory(files: FileBackend, agent_id: str, call: Callable[..., Any]) -> FileBackend:
    """`files`, with the memory of the agent below /memory. `call` is a transaction."""
    memory = StateFilesystemBackend(MemoryFiles(agent_id, call))
    return CompositeBackend(files, {MOUNT: ReadOnly(memory, _ADVICE)})


class MemoryFiles:
    """`sandbox.backends.FileStore` over the memory as it is now. Nothing is kept between calls."""

    def __init__(self, agent_id: str, call: Callable[..., Any]) -> None:
        self._agent_id = agent_id
        self._call = call

    def __getitem__(self, path: str) -> bytes:
        content: str | None = self._call(_content, self._agent_id, path.removeprefix("/"))
        if content is None:
            raise KeyError(path)
        return content.encode()

    def __setitem__(self, path: str, data: bytes) -> None:
        raise ReadOnlyPath(_ADVICE, path)

    def __delitem__(self, path: str) -> None:
        raise ReadOnlyPath(_ADVICE, path)

    def info(self, path: str) -> StoredFile | None:
        directory = path.rpartition("/")[0]
        return next((found for found in self.scan(f"{directory}/") if found.path == path), None)

    def scan(self, prefix: str) -> list[StoredFile]:
        entries = self._call(list_memory_entries, self._agent_id, prefix.strip("/"))
        return [
            StoredFile(
                f"/{entry.path}",
                entry.size_bytes,
                entry.created_at.timestamp(),
                entry.updated_at.timestamp(),
            )
            for entry in entries
        ]


class SeenOutsideMemory:
    """`seen` without the memory: an edit there builds on a revision, not on what was read."""

    def __init__(self, seen: SeenFiles) -> None:
        self._seen = seen

    def get(self, path: str) -> str | None:
        return None if is_within(path, MOUNT) else self._seen.get(path)

    def put(self, path: str, content_hash: str | None) -> None:
        if not is_within(path, MOUNT):
            self._seen.put(path, content_hash)


def _content(agent_id: str, path: str) -> str | None:
    try:
        return memory_state(agent_id, path).content
    except InvalidPath:
        return None
