"""Database rows of one memory: the agent's, or that of one person with this agent.

Every query for a path uses these functions, so that nobody gets the files of another person.
"""

from __future__ import annotations

from django.db.models import QuerySet

from memory.models import MemoryFile, MemoryRevision
from memory.paths import person_at


def files_of(agent_id: str, person_id: int | None = None) -> QuerySet[MemoryFile]:
    """Return the agent's own files, or with `person_id` the files of this person's `me/`."""
    return MemoryFile.every.filter(agent_id=agent_id, person_id=person_id)


def revisions_of(agent_id: str, person_id: int | None = None) -> QuerySet[MemoryRevision]:
    """Return revisions of the agent's own files, or with `person_id` of this person's `me/`."""
    return MemoryRevision.every.filter(agent_id=agent_id, person_id=person_id)


def file_at(agent_id: str, path: str, person_id: int | None) -> QuerySet[MemoryFile]:
    """Return the file at a valid path, as a query set of one row or none. Raises `InvalidPath`.

    `person_id` is the reader, whose file a path below `me/` names.
    """
    return files_of(agent_id, person_at(path, person_id)).filter(path=path)


def revisions_at(agent_id: str, path: str, person_id: int | None) -> QuerySet[MemoryRevision]:
    """Return the revisions of the file at a valid path. Raises `InvalidPath`.

    `person_id` is the reader, whose file a path below `me/` names.
    """
    return revisions_of(agent_id, person_at(path, person_id)).filter(path=path)
