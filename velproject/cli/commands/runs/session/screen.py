"""The output of a session at a terminal with colors: Markdown, and differences of files."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from agents.doors.cli.terminal import visible
from agents.doors.cli.wording import LINE_WIDTH, result_text, short_output
from agents.events.catalogue.tool_calls import ToolCalled, ToolCompleted
from velproject.cli.commands.runs.display import QUIET_TOOLS, Display
from velproject.cli.commands.runs.session.markdown import MarkdownStream

KEPT_OUTPUTS = 50
MOST_LINES = 40
MOST_CHARACTERS = 20_000
"""The limit for texts that are compared, which takes quadratic time."""
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class Output:
    """The whole output of a tool call, with visible control characters."""

    number: int
    tool: str
    text: str


class SessionDisplay(Display):
    """Shows events like `Display`, answers as Markdown, and the lines that an edit has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._changes: dict[str, list[str]] = {}
        self._answer: MarkdownStream | None = None
        self._count = 0
        self._outputs: OrderedDict[int, Output] = OrderedDict()

    def event(self, event: dict[str, Any]) -> None:
        """Show an event. The difference comes after a call that has succeeded."""
        data = event["data"]
        if event["type"] == ToolCalled.type:
            self._changes[data["call_id"]] = changed_lines(data["tool"], data["input"])
        super().event(event)
        if event["type"] == ToolCompleted.type:
            self._keep(data["call_id"], str(data["output"]))
            self._show(self._changes.pop(data["call_id"], []))

    def output(self, number: int | None) -> Output | None:
        """Return a shortened output by its number, or the last one. Only the newest are kept."""
        if number is None:
            return next(reversed(self._outputs.values()), None)
        return self._outputs.get(number)

    def _keep(self, call: str, output: str) -> None:
        """Keep an output of which the terminal shows only the beginning."""
        tool = self._tools.get(call, "")
        text = visible(result_text(output)).rstrip()
        if tool in QUIET_TOOLS or text.split("\n") == short_output(output):
            return
        self._count += 1
        self._outputs[self._count] = Output(self._count, tool, text)
        while len(self._outputs) > KEPT_OUTPUTS:
            self._outputs.popitem(last=False)
        self.note(f"  /output {self._count} or Ctrl-O shows all of it")

    def _say(self, part: str, text: str) -> None:
        if self.only_value or not text:
            super()._say(part, text)
            return
        self._rest()
        self._parts[part] = self._parts.get(part, "") + text
        if self._answer is None:
            self._answer = MarkdownStream()
        self._answer.feed(text)
        self._mid_line = True

    def _end_line(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            super()._end_line()
            return
        answer.finish()
        self._mid_line = False

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
