"""Backends: storages for an agent's files behind one interface, which `protocol` defines."""

from sandbox.backends.adapted import AdaptedBackend
from sandbox.backends.composite import CompositeBackend
from sandbox.backends.protocol import (
    Entry,
    ExecutingBackend,
    FileBackend,
    FileStat,
    FilesystemBackend,
)
from sandbox.backends.remembering import RememberingBackend, SeenFiles
from sandbox.backends.state import (
    FileStore,
    MemoryFileStore,
    StateFilesystemBackend,
    StoredFile,
)
from sandbox.backends.tree import TreeBackend
from sandbox.backends.workspace import ReadOnly, WorkspaceBackend

__all__ = [
    "AdaptedBackend",
    "CompositeBackend",
    "Entry",
    "ExecutingBackend",
    "FileBackend",
    "FileStat",
    "FileStore",
    "FilesystemBackend",
    "MemoryFileStore",
    "ReadOnly",
    "RememberingBackend",
    "SeenFiles",
    "StateFilesystemBackend",
    "StoredFile",
    "TreeBackend",
    "WorkspaceBackend",
]
