"""The model's script in a storm, and the effects that must exist afterwards.

Each run plays the same story under its own name. A command appends a line with the run and the call
to a ledger, so a duplicate line means that a call was executed twice.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from agents.models import Run, Thread, ToolCall
from tests.support.messages_script import Request, ToolUse, Turn

NAME = re.compile(rb"Story ([a-z0-9-]+):")
LEDGER = "/sandbox/workspace/ledger"
ASKS = {"execute_python": True}
"""The agent's `interrupt_on`: these calls require approval."""
TURNS = 6


def task(name: str) -> str:
    return f"Story {name}: do what the story says."


def play(request: Request) -> Turn:
    """Return the reply to a request, by the name in its first message and the progress so far."""
    found = NAME.search(request.body)
    assert found is not None
    return turn(found[1].decode(), request.replies)


def turn(name: str, step: int) -> Turn:
    def line(position: int) -> str:
        return f"{name}.{step}.{position}"

    def bash(position: int, seconds: float = 0.0) -> ToolUse:
        wait = f"sleep {seconds}; " if seconds else ""
        return ToolUse("execute", {"command": f"{wait}echo {line(position)} >> {LEDGER}; {wait}:"})

    def python(position: int) -> ToolUse:
        code = f"open({LEDGER!r}, 'a').write({line(position)!r} + '\\n')"
        return ToolUse("execute_python", {"code": code})

    look = ToolUse("ls", {"path": "/sandbox/workspace"})
    note = ToolUse("write_file", {"path": f"notes-{step}.txt", "content": f"{line(0)}\n" * 50})
    todo = ToolUse("write_todos", {"todos": [{"content": line(0), "status": "in_progress"}]})
    search = ToolUse("grep", {"pattern": name, "path": "/sandbox/workspace"})
    uses: list[list[ToolUse]] = [
        [look, todo, look],
        [note, bash(1), look],
        [bash(0, 0.15), search, bash(2)],
        [python(0), look, python(2)],
        [look, search, bash(2, 0.1)],
        [],
    ]
    assert len(uses) == TURNS
    return Turn(
        text=f"Step {step} of {name}. " * 5,
        thinking=f"I think about {line(0)}." if step % 2 else None,
        tool_uses=uses[step],
        pieces=5,
        chunk_delay=0.015,
    )


def ledger_lines(workspaces: Path, thread: Thread) -> list[str]:
    path = workspaces / thread.id / "workspace" / "ledger"
    return path.read_text().splitlines() if path.exists() else []


def check_ledger(workspaces: Path, run: Run, name: str) -> None:
    """Check that each line occurs once and has a call, and each successful call has a line."""
    lines = ledger_lines(workspaces, run.thread)
    twice = [line for line, count in Counter(lines).items() if count > 1]
    assert not twice, f"calls were made twice: {twice}"
    calls = {
        f"{name}.{call.turn - 1}.{call.position}": call
        for call in ToolCall.objects.filter(run=run, tool__startswith="execute")
    }
    for line in lines:
        assert calls[line].attempt == 1, f"{line} was written by a call that is {calls[line]}"
    for line, call in calls.items():
        if call.status == "succeeded":
            assert line in lines, f"{line} is missing though its call succeeded"
