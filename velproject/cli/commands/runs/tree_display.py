"""A run with its subagents on the terminal: their lines are indented and start with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agents.doors.cli.terminal import one_line, visible
from agents.doors.cli.wording import LINE_WIDTH, short_input
from agents.events.catalogue.approvals import ApprovalDecided, ApprovalRequested
from agents.events.catalogue.messages import TextCompleted
from agents.events.catalogue.runs import RunFailed
from agents.events.catalogue.subagents import SubagentFinished, SubagentStarted
from agents.events.catalogue.tool_calls import ToolCalled, ToolDenied, ToolFailed, ToolRejected
from agents.kernel.features import collect
from agents.models import Run
from velproject.cli.commands.runs.display import Display

TEXT_LINES = 3
"""The most lines of a subagent's text that are shown; its own run shows the full text."""
HELD_LINES = 200
_NAME_WIDTH = 30


@dataclass(frozen=True, slots=True)
class _Member:
    label: str
    depth: int


class TreeDisplay:
    """Shows all events of a run like `Display`, and short forms of its subagents' events.

    A line of a subagent never interrupts the text of the run.
    """

    def __init__(self, run_id: str, display: Display) -> None:
        self._root = run_id
        self._display = display
        self._members: dict[str, _Member] = {}
        self._counts: dict[str, int] = {}
        self._held: list[tuple[str, str]] = []
        self._dropped = 0

    def event(self, event: dict[str, Any]) -> None:
        """Show an event of any run of the tree. The event has a `run_id`."""
        run_id, kind, data = event["run_id"], event["type"], event["data"]
        if kind == SubagentStarted.type:
            self._started(run_id, data)
        elif kind == SubagentFinished.type:
            self._finished(run_id, data)
        elif run_id == self._root:
            self._display.event(event)
        elif (show := _LINES.get(kind)) is not None:
            for text, style in show(data):
                self._line(run_id, text, style)
        self._release()

    def know(self, members: Iterable[Run]) -> None:
        """Add subagents that started before the first event. Parents must come first."""
        for member in members:
            self._add(member.parent_id or "", member.pk, member.subagent)

    def _add(self, parent: str, child: str, given_name: str) -> str:
        name = one_line(given_name, _NAME_WIDTH)
        count = self._counts[name] = self._counts.get(name, 0) + 1
        label = name if count == 1 else f"{name} {count}"
        above = self._members.get(parent)
        self._members[child] = _Member(label, above.depth + 1 if above else 1)
        return label

    def _started(self, parent: str, data: dict[str, Any]) -> None:
        child = data["child_run_id"]
        label = self._add(parent, child, str(data["name"]))
        task = one_line(str(data.get("task", "")), LINE_WIDTH)
        self._line(parent, f"⤷ {label} starts (run {child}): {task}", "dim")

    def _finished(self, parent: str, data: dict[str, Any]) -> None:
        member = self._members.get(data["child_run_id"])
        label = member.label if member else one_line(str(data["name"]), _NAME_WIDTH)
        style = "dim" if data["status"] == "completed" else "yellow"
        self._line(parent, f"⤶ {label}: {data['status']}", style)

    def _line(self, run_id: str, text: str, style: str) -> None:
        member = self._members.get(run_id)
        shown = f"{'  ' * member.depth}{member.label} │ {text}" if member else f"  {text}"
        if not self._display.is_mid_line:
            self._display.note(shown, style)
        elif len(self._held) < HELD_LINES:
            self._held.append((shown, style))
        else:
            self._dropped += 1

    def _release(self) -> None:
        if self._display.is_mid_line:
            return
        held, self._held = self._held, []
        for text, style in held:
            self._display.note(text, style)
        if self._dropped:
            self._display.note(f"  … {self._dropped} more lines of subagents", "dim")
            self._dropped = 0


Lines = list[tuple[str, str]]


def _said(data: dict[str, Any]) -> Lines:
    lines = [line for line in visible(data["text"]).split("\n") if line.strip()]
    shown = [(line[:LINE_WIDTH], "") for line in lines[:TEXT_LINES]]
    more = len(lines) - len(shown)
    return [*shown, (f"… {more} more lines", "dim")] if more else shown


def _called(data: dict[str, Any]) -> Lines:
    return [(f"• {one_line(data['tool'])}  {short_input(data['input'])}".rstrip(), "cyan")]


def _wrong(data: dict[str, Any]) -> Lines:
    told = data.get("message") or data.get("reason") or ""
    return [(f"✗ {one_line(str(told), 200)}", "red")]


def _asks(data: dict[str, Any]) -> Lines:
    return [(f"? {one_line(data['tool'])} waits for your approval", "bold yellow")]


def _decided(data: dict[str, Any]) -> Lines:
    return [(f"{data['decision']} by {one_line(str(data['by']))}", "dim")]


_LINES: dict[str, Callable[[dict[str, Any]], Lines]] = {
    TextCompleted.type: _said,
    ToolCalled.type: _called,
    ToolRejected.type: lambda data: [*_called(data), *_wrong(data)],
    ToolFailed.type: _wrong,
    ToolDenied.type: _wrong,
    ApprovalRequested.type: _asks,
    ApprovalDecided.type: _decided,
    RunFailed.type: _wrong,
}
_LINES.update(entry for _, entry in collect("event_lines", "TREE_LINES", skip_broken=True))
