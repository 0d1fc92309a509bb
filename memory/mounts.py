"""An agent's memory below /memory for the file tools: read-only, and current at each read.

A file tool that writes below /memory proposes an edit. The mount itself refuses to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.kernel.mounts import Mount
from agents.kernel.proposals import Proposed
from memory.edits import MemoryEdit
from memory.paths import MOUNT, InvalidPath
from memory.proposals import MEMORY_EDIT
from memory.queries.files import list_memory_entries, memory_state
from sandbox.backends import ReadOnly, StateFilesystemBackend
from sandbox.backends.protocol import FileBackend
from sandbox.backends.state import StoredFile
from sandbox.errors import ReadOnlyPath

_ADVICE = "the memory, which only a decision of a person changes. Propose it with write_memory."


class MemoryMount(Mount):
    """Mount the agent's memory at /memory."""

    root = MOUNT
    tools = {"write_memory": None, "read_memory": None, "list_memory": "knowledge"}

    def files(self, agent_id: str, call: Callable[..., Any]) -> FileBackend:
        return ReadOnly(StateFilesystemBackend(MemoryFiles(agent_id, call)), _ADVICE)

    def write(self, path: str, content: str, tool: str) -> Proposed:
        return Proposed(MEMORY_EDIT, MemoryEdit(path, "write", content, f"written through {tool}"))

    def replace(
        self, path: str, old_text: str, new_text: str, tool: str, *, replace_all: bool
    ) -> Proposed:
        edit = MemoryEdit(
            path,
            "write",
            new_text,
            f"written through {tool}",
            old_text=old_text,
            replace_all=replace_all,
        )
        return Proposed(MEMORY_EDIT, edit)


class MemoryFiles:
    """A read-only `sandbox.backends.FileStore` with the memory files of the agent `agent_id`.

    Each access reads the files again. `call(function, *arguments)` calls the function in a
    transaction and returns its result, as in `Mount.files`.
    """

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


def _content(agent_id: str, path: str) -> str | None:
    try:
        return memory_state(agent_id, path).content
    except InvalidPath:
        return None


MOUNTS = [MemoryMount()]
