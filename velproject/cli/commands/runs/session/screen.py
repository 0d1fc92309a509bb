"""The output of a session at a terminal with colors: differences of edited files."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

from agents.doors.cli.terminal import visible
from agents.doors.cli.wording import LINE_WIDTH
from agents.events.catalogue.tool_calls import ToolCalled, ToolCompleted
from velproject.cli.commands.runs.display import Display

MOST_LINES = 40
MOST_CHARACTERS = 20_000
"""The limit for texts that are compared, which takes quadratic time."""
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class SessionDisplay(Display):
    """Shows events like `Display`, and the lines that an edit or a write has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._changes: dict[str, list[str]] = {}

    def event(self, event: dict[str, Any]) -> None:
        """Show an event. The difference comes after a call that has succeeded."""
        data = event["data"]
        if event["type"] == ToolCalled.type:
            self._changes[data["call_id"]] = changed_lines(data["tool"], data["input"])
        super().event(event)
        if event["type"] == ToolCompleted.type:
            self._show(self._changes.pop(data["call_id"], []))

    def _show(self, lines: list[str]) -> None:
        for line in lines[:MOST_LINES]:
            self.note(f"  {line[:LINE_WIDTH]}", _STYLES.get(line[:1], "dim"))
        if (more := len(lines) - MOST_LINES) > 0:
            self.note(f"  … {more} more lines; `vel runs show RUN` shows the run")


def changed_lines(tool: str, given: Any) -> list[str]:
    """Return the lines of a unified diff of an edit or a write, without its head.

    A write counts as an edit of an empty file. Control characters are made visible. Other calls,
    and very long texts, have no lines.
    """
    if not isinstance(given, dict):
        return []
    before, after = given.get("old_text", ""), given.get("new_text", "")
    if tool == "write_file":
        before, after = "", given.get("content", "")
    elif tool != "edit_file":
        return []
    if not (isinstance(before, str) and isinstance(after, str)):
        return []
    if len(before) + len(after) > MOST_CHARACTERS:
        return []
    old, new = (visible(text).split("\n") if text else [] for text in (before, after))
    return list(unified_diff(old, new, lineterm=""))[3:]
