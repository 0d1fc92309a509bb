"""A worker that is killed after a guardrail's decision and before its row is stored."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.features.guardrails.options import GuardrailOptions
from agents.features.guardrails.public import Decision, GuardContext, Guardrail, block
from agents.models import StateFile, ToolCall
from tests.support.cluster import Cluster
from tests.support.runs import (
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
    wait_for_status,
)

pytestmark = pytest.mark.django_db(transaction=True)

MARKS = "VEL_TEST_MARKS"


def mark(name: str) -> bool:
    """Append a line to a file that outlives the process. Return whether it is the first."""
    with (Path(os.environ[MARKS]) / name).open("a") as file:
        file.write(f"{os.getpid()}\n")
        return file.tell() == len(f"{os.getpid()}\n")


def die(point: CrashPoint) -> None:
    if point == CrashPoint.BLOCKED:
        os.kill(os.getpid(), signal.SIGKILL)


class BlocksAndDies(Guardrail):
    """A guardrail that kills the first worker with a decision before it can store it."""

    name = "blocks-and-dies"

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Decision:
        if mark("checked"):
            crash_points.crash_at(die)
        return block("nothing is written here")


@pytest.mark.slow
def test_a_block_holds_though_its_worker_was_killed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = make_user()
    turns: list[dict[str, Any]] = [
        {"tool_calls": [{"name": "write_file", "input": {"path": "/a", "content": "x"}}]},
        {"text": "Done."},
    ]
    settings: dict[str, Any] = {
        "VEL_GUARDRAILS": f"{__name__}.BlocksAndDies",
        "VEL_TEST_LEASE": "2",
        MARKS: str(directory),
    }
    with Cluster(directory, **settings):
        monkeypatch.setattr(GuardrailOptions, "check", lambda self, spec: None)
        make_agent(user, model=script_file(directory, turns), guardrails=["blocks-and-dies"])
        run = wait_for_status(start_run(user), "completed", "failed")
    assert run.status == "completed", run.error_message
    assert len(set((directory / "checked").read_text().split())) == 2, "two workers checked it"
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.code, call.attempt) == ("denied", "guardrail", 0)
    assert len(events(run, "guard.blocked")) == 1
    assert not StateFile.objects.filter(thread=run.thread).exists()
