"""Print the events of skills as lines in the terminal while `vel` runs a task."""

from __future__ import annotations

from typing import Any, Protocol

from agents.doors.cli.terminal import one_line
from skills_app.events import SkillLoaded, SkillsSkipped

SKIPPED_SHOWN = 5


class Lines(Protocol):
    def note(self, text: str, style: str = "") -> None:
        """Print a line with `text`."""


def skills_skipped(lines: Lines, data: dict[str, Any]) -> None:
    shown = data["problems"][:SKIPPED_SHOWN]
    for problem in shown:
        line = f"{one_line(str(problem['skill']))}: {one_line(str(problem['message']), 200)}"
        lines.note(f"skill left out: {line}", "yellow")
    if (more := data["count"] - len(shown)) > 0:
        lines.note(f"skills left out: {more} more", "yellow")


def skill_loaded(lines: Lines, data: dict[str, Any]) -> None:
    lines.note(f"  skill: {one_line(str(data['name']))} ({one_line(str(data['trust']))})")


EVENT_LINES = [(SkillsSkipped.type, skills_skipped), (SkillLoaded.type, skill_loaded)]
