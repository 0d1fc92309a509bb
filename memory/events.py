"""Memory: files that the agent keeps between runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agents.events.event import Event


@dataclass(frozen=True, kw_only=True)
class MemoryChanged(Event):
    """An edit of the agent's memory was saved: after a person's approval, or without asking."""

    type: ClassVar[str] = "memory.changed"

    path: str
    """The path of the file, such as `knowledge/preferences.md`; `me/` for a file of one person."""
    operation: str
    """`write`, `append` or `delete`."""
    revision: int
    """The number of the new revision of the file, or of the new version of a skill."""
    approval_id: str | None
    """The id of the approval request. Null if the agent has saved it without asking."""


EVENTS = [MemoryChanged]
