"""A file of a memory as it is now, and how much a memory holds."""

from __future__ import annotations

from django.db.models import Sum

from memory.folders import FileState
from memory.models import MemoryFile, MemoryRevision


def file_state(agent_id: str, path: str) -> FileState:
    """The file as it is now. `path` is a checked one."""
    latest = (
        MemoryRevision.objects.filter(agent_id=agent_id, path=path)
        .order_by("-number")
        .values_list("content", "number")
        .first()
    )
    return FileState(*latest) if latest else FileState(None, 0)


def memory_bytes(agent_id: str, *, without: str = "") -> int:
    """What an agent's files take, the file at `without` not counted."""
    files = MemoryFile.objects.filter(agent_id=agent_id).exclude(path=without)
    return files.aggregate(total=Sum("size_bytes"))["total"] or 0
