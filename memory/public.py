"""The public API of the memory for features that add a folder to it."""

from memory.errors import Changed, MemoryRefused, NameRefused
from memory.folders import Change, FileState, MemoryEntry, MemoryFolder, RevisionEntry
from memory.limits import size_of
from memory.models import Operation
from memory.paths import content_type_of

__all__ = [
    "Change",
    "Changed",
    "FileState",
    "MemoryEntry",
    "MemoryFolder",
    "MemoryRefused",
    "NameRefused",
    "Operation",
    "RevisionEntry",
    "content_type_of",
    "size_of",
]
