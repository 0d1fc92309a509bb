"""One file of an agent's memory with its content, as doors show it to people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agents.models import Agent, AgentVersion
from memory.folders import folder_of
from memory.limits import size_of
from memory.models import MemoryFile
from memory.paths import READ_ONLY, check_path, content_type_of
from memory.queries.tree import memory_state


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A current file. `revision` is 0 for the two read-only files, which have no revisions."""

    path: str
    content: str
    content_type: str
    size_bytes: int
    revision: int
    updated_at: datetime

    @property
    def is_read_only(self) -> bool:
        return self.path in READ_ONLY


def memory_file(agent_id: str, path: str) -> ShownFile | None:
    """Return the file at `path`, None if it does not exist. Raises `memory.paths.InvalidPath`."""
    check_path(path)
    state = memory_state(agent_id, path)
    if state.content is None:
        return None
    updated_at = _updated_at(agent_id, path)
    if updated_at is None:
        return None  # deleted since the first query
    return ShownFile(
        path=path,
        content=state.content,
        content_type=content_type_of(path),
        size_bytes=size_of(state.content),
        revision=state.revision,
        updated_at=updated_at,
    )


def _updated_at(agent_id: str, path: str) -> datetime | None:
    """Return when the file got its content; for the settings, when their last version was made."""
    if path in READ_ONLY:
        version = AgentVersion.objects.filter(agent_id=agent_id).order_by("-number").first()
        return version.created_at if version else Agent.objects.get(pk=agent_id).updated_at
    if (folder := folder_of(path)) is not None:
        return folder.updated_at(agent_id, path)
    files = MemoryFile.objects.filter(agent_id=agent_id, path=path)
    return files.values_list("updated_at", flat=True).first()
