"""The to-do list of the thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import TypedDict

from agents.events.event import Event


class Todo(TypedDict):
    """One item of the list."""

    id: str
    """Its id for the agent: `todo_` and its position, from 0."""
    content: str
    """The task."""
    status: str
    """`pending`, `in_progress`, `completed` or `blocked`."""
    active_form: str
    """The words to show while it is in progress, or an empty text."""
    note: str
    """A note, as the reason why it is blocked, or an empty text."""
    created_at: str
    """When it was first in the list, in UTC (ISO 8601)."""
    updated_at: str
    """When it was last changed."""
    completed_at: str | None
    """When it was completed, or null."""


@dataclass(frozen=True, kw_only=True)
class TodosUpdated(Event):
    """The agent changed its to-do list, or a thread starts with a list.

    A fork and a session of a Python program can start with one.
    """

    type: ClassVar[str] = "todos.updated"

    call_id: str | None
    """The call that changed the list. Null for a list that was given to the thread."""
    current_task: str
    """The heading of the list, or an empty text."""
    todos: list[Todo]
    """The whole list, in its order."""


EVENTS = [TodosUpdated]
