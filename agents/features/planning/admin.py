"""The to-do list on the page of a thread."""

from __future__ import annotations

from typing import Any

from agents.doors.admin.text import shown
from agents.doors.admin.thread_sections import ThreadSection
from agents.features.planning.models import Todo
from agents.models import Thread


def todo_rows(thread: Thread) -> list[tuple[Todo, Any, Any]]:
    """Return each item with its content and its note as the page shows them."""
    rows = Todo.objects.filter(thread=thread)
    return [(todo, shown(todo.content), shown(todo.note)) for todo in rows]


THREAD_SECTIONS = [ThreadSection("vel_planning/admin_section.html", todo_rows)]
