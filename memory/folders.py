"""Folders of the memory whose files are rows of another feature: its `memory_folders.FOLDERS`.

The memory shows these files together with its own, and lets agents propose changes to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from agents.kernel.features import collect
from memory.models import MemoryEditRequest, Operation


@dataclass(frozen=True, slots=True)
class FileState:
    """A file's state. `content` is None if it does not exist; `revision` is 0 if it never did."""

    content: str | None
    revision: int


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One file as listings show it."""

    path: str
    content_type: str
    size_bytes: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """One state of a file, without its content. `by` is a user's name."""

    number: int
    operation: str
    size_bytes: int
    reason: str
    source: str
    by: str
    created_at: datetime
    is_deleted: bool
    approval_id: str | None
    """The request whose decision made it; None for a direct change by a person."""
    is_purged: bool = False
    """Whether its content was erased."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to store. `content` is the whole file, None to delete it.

    `base_revision` is the revision that the change builds on. `source` names the door: `approval`,
    `api`, `web`, `admin`, `cli`, `import`. `person_id` is the person whose `me/` it changes.
    """

    path: str
    operation: Operation
    content: str | None
    base_revision: int
    source: str
    by_id: int | None = None
    reason: str = ""
    edit_request: MemoryEditRequest | None = None
    person_id: int | None = None


class MemoryFolder:
    """The base class. Paths are checked, and are below `prefix`."""

    prefix: ClassVar[str]
    """For example, `skills/`."""

    def state(self, agent_id: str, path: str) -> FileState:
        """Return the current file."""
        raise NotImplementedError

    def updated_at(self, agent_id: str, path: str) -> datetime | None:
        """Return when the file got its content; None if it does not exist."""
        raise NotImplementedError

    def entries(self, agent_id: str) -> Sequence[MemoryEntry]:
        """Return all files, in the order of their paths."""
        raise NotImplementedError

    def revisions(self, agent_id: str, path: str) -> Sequence[RevisionEntry]:
        """Return every state of the file, the latest first, without requests."""
        raise NotImplementedError

    def content(self, agent_id: str, path: str, number: int) -> tuple[str | None] | None:
        """Return the content of a revision; None if it does not exist."""
        raise NotImplementedError

    def check(self, agent_id: str, path: str, content: str) -> None:
        """Raise `MemoryRefused` if the agent may not have this file with this content."""
        raise NotImplementedError

    def store(self, agent_id: str, change: Change) -> int:
        """Make `change`, and return the number of the revision. Raises `MemoryRefused`."""
        raise NotImplementedError


def folders() -> list[MemoryFolder]:
    """Return the folders of the installed features."""
    return [folder for _, folder in collect("memory_folders", "FOLDERS")]


def folder_of(path: str) -> MemoryFolder | None:
    """Return the folder of a file; None for a file of the memory itself."""
    return next((folder for folder in folders() if path.startswith(folder.prefix)), None)
