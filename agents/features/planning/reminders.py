"""The open to-dos, for a conversation without its earlier turns."""

from __future__ import annotations

from dataclasses import replace

from agents.features.planning.todo_list import as_markdown
from agents.features.planning.todos import read_plan
from agents.kernel.reminders import ReminderSection


def open_todos(thread_id: str) -> str:
    """Return the current task and the to-dos that are not completed, as Markdown."""
    plan = read_plan(thread_id)
    items = [item for item in plan.items if item.status != "completed"]
    return as_markdown(replace(plan, items=items))


SECTIONS = [ReminderSection("Open to-dos", open_todos, share=0.04)]
