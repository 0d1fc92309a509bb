"""The to-do list on the page of a thread."""

from __future__ import annotations

from typing import Any

from agents.doors.admin.text import shown
from agents.doors.admin.thread_sections import ThreadSection
from agents.features.planning.models import Todo, TodoHeading
from agents.models import Thread


def todo_list(thread: Thread) -> dict[str, Any]:
    """Return the heading, and each item with its content and its note, as the page shows them."""
    rows = Todo.objects.filter(thread=thread)
    items = [(todo, shown(todo.content), shown(todo.note)) for todo in rows]
    heading = TodoHeading.objects.filter(thread=thread).first()
    if not items and heading is None:
        return {}
    return {"heading": shown(heading.current_task) if heading else None, "items": items}


THREAD_SECTIONS = [ThreadSection("vel_planning/admin_section.html", todo_list)]
