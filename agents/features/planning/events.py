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


@dataclass(frozen=True, kw_only=True)
class TodosUpdated(Event):
    """The agent changed its to-do list. A fork has the event with the list that it starts with."""

    type: ClassVar[str] = "todos.updated"

    todos: list[Todo]
    """The whole list, in its order."""


EVENTS = [TodosUpdated]
