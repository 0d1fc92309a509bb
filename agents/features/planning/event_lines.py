"""The to-do list as lines of the terminal."""

from __future__ import annotations

from typing import Any, Protocol

from agents.doors.cli.terminal import one_line
from agents.features.planning.events import TodosUpdated
from agents.features.planning.todo_list import WRITE

_MARKS = {"pending": "○", "in_progress": "◐", "completed": "●", "blocked": "!"}


class Lines(Protocol):
    def note(self, text: str, style: str = "") -> None:
        """Print a line."""


def todos_updated(lines: Lines, data: dict[str, Any]) -> None:
    if heading := data.get("current_task"):
        lines.note(f"  {one_line(heading)}", "bold")
    for todo in data["todos"]:
        mark = _MARKS.get(todo["status"], "?")
        style = "bold" if todo["status"] == "in_progress" else "dim"
        lines.note(f"  {mark} {one_line(todo['content'])}", style)


EVENT_LINES = [(TodosUpdated.type, todos_updated)]
QUIET_TOOLS = [WRITE]
