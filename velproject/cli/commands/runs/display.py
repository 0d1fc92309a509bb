"""A run on the terminal: the agent's text on standard output, the rest on standard error.

`Display` has a method for each type of event that it shows. Text that the agent, a tool or a file
may have written goes through `visible` before it is printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from agents.doors.cli.terminal import one_line, visible
from agents.doors.cli.wording import short_input, short_output, totals
from agents.events.catalogue.approvals import ApprovalDecided, ApprovalRequested
from agents.events.catalogue.files import UploadsReady, WorkspaceRunsOutside
from agents.events.catalogue.messages import StepReset, StepStarted, TextCompleted, TextDelta
from agents.events.catalogue.runs import (
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunSuspended,
)
from agents.events.catalogue.sandbox import SandboxConnection
from agents.events.catalogue.structured_output import OutputInvalid
from agents.events.catalogue.tool_calls import (
    ToolCalled,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolProgress,
    ToolRejected,
    ToolStarted,
)
from agents.hidden_text import escaped_json
from agents.kernel.features import collect
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    from rich import status  # takes 5 ms, which only terminals need

SKIPPED_SHOWN = 10
OUTSIDE_SHOWN = 50


def new_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: no markup, no emoji names, no folding."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


class Display:
    """Prints the events of a run. With `live`, shows a spinner if standard error is a terminal."""

    def __init__(self, *, live: bool = True) -> None:
        self.notes = new_console(stderr=True)
        self._live = live and self.notes.is_terminal
        self._status: status.Status | None = None
        self._doing = ""
        self._typed = ""
        self._asides: list[tuple[str, str]] = []
        self._parts: dict[str, str] = {}
        self._mid_line = False
        self._tools: dict[str, str] = {}
        self.only_value = False
        """The structured answer goes to standard output as JSON, and text to standard error."""

    @property
    def is_mid_line(self) -> bool:
        """Return whether the agent's text is on an unfinished line."""
        return self._mid_line

    def event(self, event: dict[str, Any]) -> None:
        """Show one event. Ignores types that have no information for a person."""
        show = _SHOWN.get(event["type"])
        if show is not None:
            show(self, event["data"])
        self._say_asides()

    def note(self, text: str, style: str = "dim") -> None:
        """Print a message of Vel itself."""
        self._end_line()
        self.notes.print(Text(visible(text), style=style))

    def aside(self, text: str, style: str = "dim") -> None:
        """Print a message of Vel, but not within the agent's text."""
        self._asides.append((text, style))
        self._say_asides()

    def _say_asides(self) -> None:
        while self._asides and not self._mid_line:
            self.note(*self._asides.pop(0))

    def typing(self, text: str) -> None:
        """Show the line that the person types during a task, after the spinner."""
        self._typed = text
        if self._status is not None:
            self._status.update(self._state())

    def close(self) -> None:
        """Remove the spinner and end an unfinished line."""
        self._rest()
        self._end_line()
        self._say_asides()

    # The model's words.

    def _on_run_started(self, data: dict[str, Any]) -> None:
        if data.get("provider") == "scripted":
            self.note(
                "Offline: a scripted model answers. No language model is used. "
                "For a real model, set ANTHROPIC_API_KEY or use --provider.",
                "yellow",
            )

    def _on_step_started(self, data: dict[str, Any]) -> None:
        self._busy("thinking")

    def _on_step_reset(self, data: dict[str, Any]) -> None:
        self._parts.clear()
        again = f", retrying in {data['retry_in']:.0f} s" if "retry_in" in data else ""
        self.note(f"↻ {one_line(str(data.get('reason', '')))}{again}", "yellow")
        self._busy("thinking")

    def _on_text_delta(self, data: dict[str, Any]) -> None:
        self._say(data["part_id"], data["text"])

    def _on_text_completed(self, data: dict[str, Any]) -> None:
        part, whole = data["part_id"], data["text"]
        shown = self._parts.get(part, "")
        if whole.startswith(shown):
            self._say(part, whole[len(shown) :])
        else:
            # The text already shown belongs to an attempt that failed.
            self._end_line()
            self._say(part, whole)
        self._parts.pop(part, None)
        self._end_line()

    def _say(self, part: str, text: str) -> None:
        if not text:
            return
        self._rest()
        self._parts[part] = self._parts.get(part, "") + text
        self._words.write(visible(text))
        self._words.flush()
        self._mid_line = not text.endswith("\n")

    @property
    def _words(self) -> TextIO:
        return sys.stderr if self.only_value else sys.stdout

    def _on_output_invalid(self, data: dict[str, Any]) -> None:
        for problem in data["problems"]:
            what = (
                f"{problem['path']}: {problem['message']}"
                if problem["path"]
                else problem["message"]
            )
            self.note(f"  ✗ the answer does not match its schema: {one_line(what, 200)}", "yellow")

    # The model's tool calls.

    def _on_tool_called(self, data: dict[str, Any]) -> None:
        self._tools[data["call_id"]] = data["tool"]
        given = "" if data["tool"] in QUIET_TOOLS else short_input(data["input"])
        self.note(f"• {data['tool']}  {given}".rstrip(), "bold cyan")

    def _on_tool_rejected(self, data: dict[str, Any]) -> None:
        self.note(f"• {data['tool']}  {short_input(data['input'])}", "bold cyan")
        self.note(f"  ✗ {one_line(data['message'], 200)}", "red")

    def _on_tool_started(self, data: dict[str, Any]) -> None:
        self._busy(self._tools.get(data["call_id"], "working"))

    def _on_tool_progress(self, data: dict[str, Any]) -> None:
        name = self._tools.get(data["call_id"], "working")
        last = data["text"].rstrip().rpartition("\n")[2]
        self._busy(f"{name}: {one_line(last, 60)}" if last else name)

    def _on_tool_completed(self, data: dict[str, Any]) -> None:
        if self._tools.get(data["call_id"]) not in QUIET_TOOLS:
            for line in short_output(str(data["output"])):
                self.note(f"  {line}")
        self._busy("thinking")

    def _on_tool_failed(self, data: dict[str, Any]) -> None:
        self.note(f"  ✗ {one_line(str(data['message']), 200)}", "red")
        self._busy("thinking")

    def _on_tool_denied(self, data: dict[str, Any]) -> None:
        self.note(f"  ✗ denied: {one_line(str(data['reason']), 200)}", "red")

    def _on_sandbox_connection(self, data: dict[str, Any]) -> None:
        where = one_line(f"{data['host']}:{data['port']}" if data["host"] else "a request")
        if data["allowed"]:
            self.note(f"  → {where}")
        else:
            self.note(f"  ✗ network: {where}: {one_line(data['reason'])}", "red")

    def _on_uploads_ready(self, data: dict[str, Any]) -> None:
        for file in data["files"]:
            if file.get("note"):
                self.note(f"{file['path']}: {file['note']}", "yellow")

    def _on_workspace_runs_outside(self, data: dict[str, Any]) -> None:
        self._rest()
        if data["changes"]:
            self.note(
                "These files can run outside the sandbox later. Check them first:", "bold yellow"
            )
        for change in data["changes"][:OUTSIDE_SHOWN]:
            path = one_line(str(change["path"]), 200)
            self.note(f"  {change['what']} {path} ({one_line(str(change['why']), 200)})", "yellow")
        if (more := data["count"] - OUTSIDE_SHOWN) > 0:
            self.note(f"  and {more} more files", "yellow")
        for place in data["incomplete"][:SKIPPED_SHOWN]:
            self.note(f"  not checked: {one_line(str(place), 200)}", "yellow")

    # Pauses and the end.

    def _on_approval_requested(self, data: dict[str, Any]) -> None:
        self._rest()
        self.note(f"? {data['tool']} waits for your approval", "bold yellow")

    def _on_approval_decided(self, data: dict[str, Any]) -> None:
        reason = f": {one_line(data['reason'])}" if data.get("reason") else ""
        self.note(f"  {data['decision']} by {one_line(data['by'])}{reason}")

    def _on_run_suspended(self, data: dict[str, Any]) -> None:
        self._rest()
        if data["reason"] == "children":
            count = len(data["child_run_ids"])
            self.note(f"  waiting for {count} {'subagent' if count == 1 else 'subagents'}")
            self._busy("subagents at work")
        elif data["reason"] != "approval":
            self.note(f"  waiting for {data['reason']}")

    def _on_run_resumed(self, data: dict[str, Any]) -> None:
        if "attempt" in data:  # automatically, after a fault
            self.note(f"↻ the run continues: {one_line(str(data['reason']), 300)}", "yellow")
        self._busy("thinking")

    def _on_run_completed(self, data: dict[str, Any]) -> None:
        self._rest()
        if data["finish_reason"] == "max_tokens":
            self.note("The answer was cut at the model's limit of output tokens.", "yellow")
        if self.only_value and "structured_output" in data:
            value = json.dumps(data["structured_output"], ensure_ascii=False, indent=2)
            print(escaped_json(value), flush=True)
        self.note(totals(data))

    def _on_run_failed(self, data: dict[str, Any]) -> None:
        self._rest()
        self.note(f"Failed ({data['code']}): {one_line(data['message'], 400)}", "bold red")
        if "usage" in data:
            self.note(totals(data))

    def _on_run_cancelled(self, data: dict[str, Any]) -> None:
        self._rest()
        reason = f": {one_line(data['reason'])}" if data.get("reason") else ""
        self.note(f"Cancelled{reason}", "yellow")

    # The spinner and the unfinished line.

    def _busy(self, what: str) -> None:
        if not self._live or self._mid_line:
            return
        self._doing = what
        if self._status is None:
            self._status = status.Status(self._state(), console=self.notes)
            self._status.start()
        else:
            self._status.update(self._state())

    def _state(self) -> Text:
        typed = f"  > {self._typed}" if self._typed else ""
        return Text(visible(self._doing), style="dim").append(visible(typed), style="bold not dim")

    def _rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _end_line(self) -> None:
        if self._mid_line:
            self._words.write("\n")
            self._words.flush()
            self._mid_line = False


_SHOWN: dict[str, Callable[[Display, dict[str, Any]], None]] = {
    RunStarted.type: Display._on_run_started,
    StepStarted.type: Display._on_step_started,
    StepReset.type: Display._on_step_reset,
    TextDelta.type: Display._on_text_delta,
    TextCompleted.type: Display._on_text_completed,
    OutputInvalid.type: Display._on_output_invalid,
    ToolCalled.type: Display._on_tool_called,
    ToolRejected.type: Display._on_tool_rejected,
    ToolStarted.type: Display._on_tool_started,
    ToolProgress.type: Display._on_tool_progress,
    ToolCompleted.type: Display._on_tool_completed,
    ToolFailed.type: Display._on_tool_failed,
    ToolDenied.type: Display._on_tool_denied,
    SandboxConnection.type: Display._on_sandbox_connection,
    UploadsReady.type: Display._on_uploads_ready,
    WorkspaceRunsOutside.type: Display._on_workspace_runs_outside,
    ApprovalRequested.type: Display._on_approval_requested,
    ApprovalDecided.type: Display._on_approval_decided,
    RunSuspended.type: Display._on_run_suspended,
    RunResumed.type: Display._on_run_resumed,
    RunCompleted.type: Display._on_run_completed,
    RunFailed.type: Display._on_run_failed,
    RunCancelled.type: Display._on_run_cancelled,
}
_SHOWN.update(
    (kind, show) for _, (kind, show) in collect("event_lines", "EVENT_LINES", skip_broken=True)
)
QUIET_TOOLS = {tool for _, tool in collect("event_lines", "QUIET_TOOLS", skip_broken=True)}
"""Tools with special events. Their input and result are not printed."""
