"""A run on the terminal: the agent's words on standard output, all else on standard error.

Each event of the log is shown by one method of `Display`. Whatever the agent, a tool or a file
may have written goes through `visible` before it is printed.
"""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from velproject.cli.actions.wording import short_input, short_output, totals
from velproject.cli.terminal import one_line, visible

TODOS = "write_todos"
SKIPPED_SHOWN = 10
_TODO_MARKS = {"pending": "○", "in_progress": "◐", "completed": "●", "blocked": "!"}


def new_console(*, stderr: bool = False) -> Console:
    """A console that takes every text as it is: no markup, no emoji names, no folding."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


class Display:
    """Shows events as they come. `live` allows a spinner, and only on a terminal."""

    def __init__(self, *, live: bool = True) -> None:
        self.notes = new_console(stderr=True)
        self._live = live and self.notes.is_terminal
        self._status: Status | None = None
        self._parts: dict[str, str] = {}
        self._mid_line = False
        self._tools: dict[str, str] = {}

    def event(self, event: dict[str, Any]) -> None:
        """Show one event; types that say nothing to a person are passed over."""
        show = getattr(self, "_on_" + event["type"].replace(".", "_"), None)
        if show is not None:
            show(event["data"])

    def note(self, text: str, style: str = "dim") -> None:
        """A line of Vel's own among the rest."""
        self._end_line()
        self.notes.print(Text(visible(text), style=style))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._rest()
        self._end_line()

    # What the model says.

    def _on_run_started(self, data: dict[str, Any]) -> None:
        if data.get("provider") == "scripted":
            self.note(
                "Offline: a scripted model answers; no language model is asked. "
                "Set ANTHROPIC_API_KEY or use --provider for a real one.",
                "yellow",
            )

    def _on_step_started(self, data: dict[str, Any]) -> None:
        self._busy("thinking")

    def _on_step_reset(self, data: dict[str, Any]) -> None:
        self._parts.clear()
        again = f", again in {data['retry_in']:.0f} s" if "retry_in" in data else ""
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
            # What was streamed belonged to an attempt that failed.
            self._end_line()
            self._say(part, whole)
        self._parts.pop(part, None)
        self._end_line()

    def _say(self, part: str, text: str) -> None:
        if not text:
            return
        self._rest()
        self._parts[part] = self._parts.get(part, "") + text
        sys.stdout.write(visible(text))
        sys.stdout.flush()
        self._mid_line = not text.endswith("\n")

    # What it does.

    def _on_tool_called(self, data: dict[str, Any]) -> None:
        self._tools[data["call_id"]] = data["tool"]
        # The list itself follows as an event.
        given = "" if data["tool"] == TODOS else short_input(data["input"])
        self.note(f"• {data['tool']}  {given}".rstrip(), "bold cyan")

    def _on_tool_rejected(self, data: dict[str, Any]) -> None:
        self.note(f"• {data['tool']}  {short_input(data['input'])}", "bold cyan")
        self.note(f"  ✗ {one_line(data['message'], 200)}", "red")

    def _on_tool_started(self, data: dict[str, Any]) -> None:
        self._busy(self._tools.get(data["call_id"], "working"))

    def _on_tool_progress(self, data: dict[str, Any]) -> None:
        name = self._tools.get(data["call_id"], "working")
        last = (data.get("text") or data.get("output") or "").rstrip().rpartition("\n")[2]
        self._busy(f"{name}: {one_line(last, 60)}" if last else name)

    def _on_tool_completed(self, data: dict[str, Any]) -> None:
        if self._tools.get(data["call_id"]) != TODOS:
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

    def _on_skills_skipped(self, data: dict[str, Any]) -> None:
        shown = data["problems"][:SKIPPED_SHOWN]
        for problem in shown:
            line = f"{one_line(str(problem['skill']))}: {one_line(str(problem['message']), 200)}"
            self.note(f"skill left out: {line}", "yellow")
        if (more := data["count"] - len(shown)) > 0:
            self.note(f"skills left out: {more} more", "yellow")

    def _on_skill_loaded(self, data: dict[str, Any]) -> None:
        self.note(f"  skill: {one_line(str(data['name']))} ({one_line(str(data['trust']))})")

    def _on_todos_updated(self, data: dict[str, Any]) -> None:
        for todo in data["todos"]:
            mark = _TODO_MARKS.get(todo["status"], "?")
            style = "bold" if todo["status"] == "in_progress" else "dim"
            self.note(f"  {mark} {one_line(todo['content'])}", style)

    def _on_artifact_created(self, data: dict[str, Any]) -> None:
        self.note(f"  file: {one_line(str(data.get('name') or data.get('url')))}", "green")

    def _on_subagent_started(self, data: dict[str, Any]) -> None:
        self.note(f"  ⤷ {one_line(str(data['name']))} begins (run {data['child_run_id']})")

    def _on_subagent_finished(self, data: dict[str, Any]) -> None:
        self.note(f"  ⤶ {one_line(str(data['name']))}: {data['status']}")

    def _on_context_compacted(self, data: dict[str, Any]) -> None:
        self.note(f"  context shortened from {data['before']} to {data['after']} tokens")

    # Waiting and ending.

    def _on_approval_requested(self, data: dict[str, Any]) -> None:
        self._rest()
        self.note(f"? {data['tool']} waits for your approval", "bold yellow")

    def _on_approval_decided(self, data: dict[str, Any]) -> None:
        reason = f": {one_line(data['reason'])}" if data.get("reason") else ""
        self.note(f"  {data['decision']} by {one_line(data['by'])}{reason}")

    def _on_run_suspended(self, data: dict[str, Any]) -> None:
        self._rest()
        if data["reason"] != "approval":
            self.note(f"  waits for {data['reason']}")

    def _on_run_resumed(self, data: dict[str, Any]) -> None:
        self._busy("thinking")

    def _on_budget_warning(self, data: dict[str, Any]) -> None:
        self.note(f"  {data['kind']}: {data['used']} of {data['limit']} used", "yellow")

    def _on_run_completed(self, data: dict[str, Any]) -> None:
        self._rest()
        if data["finish_reason"] == "max_tokens":
            self.note("The answer was cut at the model's limit of output tokens.", "yellow")
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

    # The spinner and the line that is being written.

    def _busy(self, what: str) -> None:
        if not self._live or self._mid_line:
            return
        text = Text(visible(what), style="dim")
        if self._status is None:
            self._status = Status(text, console=self.notes)
            self._status.start()
        else:
            self._status.update(text)

    def _rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _end_line(self) -> None:
        if self._mid_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._mid_line = False
