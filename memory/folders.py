"""Folders of the memory whose files another feature stores, listed in its `memory_folders.FOLDERS`.

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
    """A file's state. `content` is None if there is no file.

    `revision` is the number of the latest revision, which deleted the file if `content` is None. It
    is 0 if the file never existed, and for the two read-only files.
    """

    content: str | None
    revision: int


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One file of a listing."""

    path: str
    content_type: str
    size_bytes: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """One revision of a file, without its content.

    `by` is the name of a user; "" if no person made the change or the account was deleted. A
    revision that deleted the file and was purged has `is_purged`, not `is_deleted`.
    """

    number: int
    operation: str
    size_bytes: int
    reason: str
    source: str
    by: str
    created_at: datetime
    is_deleted: bool
    approval_id: str | None
    """The approval request that led to the revision; None for a direct change by a person."""
    is_purged: bool = False
    """Whether the content of the revision was erased."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to store.

    Attributes:
        content: The whole new content, or None to delete the file.
        base_revision: The revision that the change builds on; 0 if the file never existed.
        source: The origin of the change: `approval`, `agent`, `api`, `web`, `admin`, `cli` or
            `import`.
        by_id: The person who makes or approves the change; None for a change without approval.
        edit_request: The agent's request for this change, if there is one.
        person_id: The person whose `me/` contains the file; None for other files.
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
    """Base class of a feature's folder in the memory.

    The memory calls the methods only with valid paths below `prefix`.
    """

    prefix: ClassVar[str]
    """The path that all files of the folder start with, for example `skills/`."""

    def state(self, agent_id: str, path: str) -> FileState:
        """Return the current state of the file at `path`, also if there is no such file."""
        raise NotImplementedError

    def updated_at(self, agent_id: str, path: str) -> datetime | None:
        """Return when the file got its content; None if it does not exist."""
        raise NotImplementedError

    def entries(self, agent_id: str) -> Sequence[MemoryEntry]:
        """Return all files of the agent in this folder, sorted by path."""
        raise NotImplementedError

    def revisions(self, agent_id: str, path: str) -> Sequence[RevisionEntry]:
        """Return all revisions of the file, the latest first.

        A folder need not store approvals: then every `approval_id` is None.
        """
        raise NotImplementedError

    def content(self, agent_id: str, path: str, number: int) -> tuple[str | None] | None:
        """Return a tuple with the content of revision `number`; None if it does not exist.

        The content in the tuple is None if the revision deleted the file.
        """
        raise NotImplementedError

    def check(self, agent_id: str, path: str, content: str) -> None:
        """Raise `MemoryRefused` if the agent may not have this file with this content."""
        raise NotImplementedError

    def store(self, agent_id: str, change: Change) -> int:
        """Store `change` and return the number of the new revision. Raises `MemoryRefused`."""
        raise NotImplementedError


def folders() -> list[MemoryFolder]:
    """Return the folders of the installed features."""
    return [folder for _, folder in collect("memory_folders", "FOLDERS")]


def folder_of(path: str) -> MemoryFolder | None:
    """Return the feature's folder that contains `path`; None for a file of the memory itself."""
    return next((folder for folder in folders() if path.startswith(folder.prefix)), None)
