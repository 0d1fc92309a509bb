"""The events of guardrails as lines of the terminal."""

from __future__ import annotations

from typing import Any, Protocol

from agents.doors.cli.terminal import one_line
from agents.features.guardrails.events import (
    GuardBlocked,
    GuardReplaced,
    GuardStuck,
    HookFailed,
    ToolRetried,
)


class Lines(Protocol):
    def note(self, text: str, style: str = "") -> None:
        """Print a line."""


def guard_stuck(lines: Lines, data: dict[str, Any]) -> None:
    action = "the run ends" if data["action"] == "end" else "the model received a note"
    kind = str(data["kind"]).replace("_", " ")
    lines.note(f"  stuck ({kind}, {data['count']} times): {action}", "yellow")


def guard_blocked(lines: Lines, data: dict[str, Any]) -> None:
    name = one_line(str(data["guardrail"]))
    stage = str(data["stage"]).replace("_", " ")
    lines.note(f"  ✗ {name} blocked ({stage}): {one_line(str(data['reason']), 200)}", "red")


def guard_replaced(lines: Lines, data: dict[str, Any]) -> None:
    stage = str(data["stage"]).replace("_", " ")
    lines.note(f"  {one_line(str(data['guardrail']))} changed it ({stage})", "yellow")


def hook_failed(lines: Lines, data: dict[str, Any]) -> None:
    lines.note(f"  hook {one_line(str(data['hook']))}: {data['message']}", "yellow")


def tool_retried(lines: Lines, data: dict[str, Any]) -> None:
    reason = one_line(str(data["message"]), 200)
    lines.note(f"  again in {data['retry_in']:g} s: {reason}", "yellow")


EVENT_LINES = [
    (GuardStuck.type, guard_stuck),
    (GuardBlocked.type, guard_blocked),
    (GuardReplaced.type, guard_replaced),
    (HookFailed.type, hook_failed),
    (ToolRetried.type, tool_retried),
]
