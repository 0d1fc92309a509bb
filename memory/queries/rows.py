"""The rows of one memory: the agent's, or that of one person with this agent.

Every query for a path starts here, so that no one gets the files of another person.
"""

from __future__ import annotations

from django.db.models import QuerySet

from memory.models import MemoryFile, MemoryRevision
from memory.paths import person_at


def files_of(agent_id: str, person_id: int | None = None) -> QuerySet[MemoryFile]:
    """Return the agent's files, or only those of a person."""
    return MemoryFile.every.filter(agent_id=agent_id, person_id=person_id)


def revisions_of(agent_id: str, person_id: int | None = None) -> QuerySet[MemoryRevision]:
    """Return the revisions of the agent's files, or only those of a person's files."""
    return MemoryRevision.every.filter(agent_id=agent_id, person_id=person_id)


def file_at(agent_id: str, path: str, person_id: int | None) -> QuerySet[MemoryFile]:
    """Return the file at a checked path for this reader. Raises `InvalidPath`."""
    return files_of(agent_id, person_at(path, person_id)).filter(path=path)


def revisions_at(agent_id: str, path: str, person_id: int | None) -> QuerySet[MemoryRevision]:
    """Return the revisions of the file at a checked path for this reader. Raises `InvalidPath`."""
    return revisions_of(agent_id, person_at(path, person_id)).filter(path=path)
