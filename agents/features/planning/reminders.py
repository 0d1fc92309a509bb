"""The open to-dos, for a conversation without its earlier turns."""

from __future__ import annotations

from agents.features.planning.todos import read_todos, todos_as_markdown
from agents.kernel.reminders import ReminderSection


def open_todos(thread_id: str) -> str:
    """Return the to-dos that are not completed, as Markdown."""
    todos = [draft for draft in read_todos(thread_id) if draft.status != "completed"]
    return todos_as_markdown(todos)


SECTIONS = [ReminderSection("Open to-dos", open_todos, share=0.04)]
