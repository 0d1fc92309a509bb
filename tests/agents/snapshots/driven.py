"""Runs of a scripted agent with a workspace, and their rows and files."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from agents.models import Agent, Run, Thread, ToolCall
from agents.services.agent_definitions.actions import save_agent
from agents.settings import DataSettings
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

Step = tuple[str, dict[str, Any]]


def play(
    directory: Path,
    *steps: Step,
    thread: Thread | None = None,
    ends: str = "completed",
    **fields: Any,
) -> Run:
    """Play a run that makes one call a turn, in `thread` or in a new one of ada's."""
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in steps]
    model = script_file(directory, [*turns, {"text": "Done."}], f"{secrets.token_hex(4)}.json")
    user = User.objects.filter(username="ada").first() or make_user()
    agent = Agent.objects.filter(slug="tester").first()
    if agent is None:
        make_agent(user, model=model, **{"sandbox": True, **fields})
    else:
        agent.model = model
        for name, value in fields.items():
            setattr(agent, name, value)
        save_agent(agent)
    more = {"thread": thread.pk} if thread else {}
    run = drive_to_end(start_run(user, **more), until=(ends, "failed", "completed"))
    assert run.status == ends, run.error_message
    return run


def write(path: str, content: str) -> Step:
    return "write_file", {"path": path, "content": content}


def read(path: str) -> Step:
    return "read_file", {"path": path}


def edit(path: str, old: str, new: str) -> Step:
    return "edit_file", {"path": path, "old_text": old, "new_text": new}


def command(text: str) -> Step:
    return "execute", {"command": text}


def area(run: Run, name: str = "workspace") -> Path:
    return DataSettings.now().workspaces / run.thread_id / name


def calls(run: Run) -> list[ToolCall]:
    return list(ToolCall.objects.filter(run=run).order_by("turn", "position"))
