"""The current state of a memory file, and the size of a memory."""

from __future__ import annotations

from django.db.models import Sum

from memory.folders import FileState
from memory.models import MemoryFile, MemoryRevision


def file_state(agent_id: str, path: str) -> FileState:
    """Return the current file. `path` is a checked path."""
    latest = (
        MemoryRevision.objects.filter(agent_id=agent_id, path=path)
        .order_by("-number")
        .values_list("content", "number")
        .first()
    )
    return FileState(*latest) if latest else FileState(None, 0)


def memory_bytes(agent_id: str, *, without: str = "") -> int:
    """Return the size of an agent's files in bytes, without the file at `without`."""
    files = MemoryFile.objects.filter(agent_id=agent_id).exclude(path=without)
    return files.aggregate(total=Sum("size_bytes"))["total"] or 0
