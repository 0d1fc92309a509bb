"""Approval requests of subagents: in the same queue, and bound to the shared files, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.features.subagents.models import Subagent
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run, ToolCall
from agents.selectors.visible import approvals_for
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest
from agents.services.files.workspaces import open_workspace, workspace_location
from agents.services.runs.control import cancel_run
from tests.support.runs import (
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "input": given} for name, given in calls]}


def family_that_asks(tmp_path: Path, place: str = "/sandbox/shared") -> tuple[User, Run]:
    """Start two parallel subagents; each writes a script to `place` and asks to run it."""
    user = make_user()
    tasks = [{"subagent": name, "task": "Run it."} for name in ("one", "two")]
    turns = [turn(("parallel_tasks", {"tasks": tasks})), {"text": "Done."}]
    agent = make_agent(
        user,
        model=script_file(tmp_path, turns),
        sandbox=True,
        interrupt_on={"execute": True},
    )
    workers = []
    for name in ("one", "two"):
        script = f"{place}/{name}.sh"
        play = [
            turn(("write_file", {"path": script, "content": f"echo good {name}"})),
            turn(("execute", {"command": f"sh {script}"})),
            {"text": "Ran it."},
        ]
        model = script_file(tmp_path, play, name)
        workers.append(Subagent(name=name, description="Runs it.", model=model))
    save_agent(agent, related={"subagents": workers})
    return user, start_run(user)


def waiting_children(run: Run) -> list[Run]:
    wait_for_status(run, "waiting")
    children = list(Run.objects.filter(parent=run).order_by("parent_index"))
    return [wait_for_status(child, "waiting") for child in children]


def pending(child: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.get(run=child, status="pending")


def approve(request: ApprovalRequest, user: User) -> None:
    decide(request.id, DecisionRequest(decision="approve", digest=request.digest), by=user)


def output(child: Run) -> str:
    return str(ToolCall.objects.get(run=child, tool="execute").result_content)


def test_each_is_decided_separately_and_the_parent_continues_after_the_last(tmp_path: Path) -> None:
    # Each has its own directory, so the first command does not make the second request stale.
    user, run = family_that_asks(tmp_path, "/sandbox/workspace")
    with running_worker():
        one, two = waiting_children(run)
        assert {item.run_id for item in approvals_for(user)} == {one.id, two.id}
        approve(pending(one), user)
        wait_for_status(one, "completed", "failed")
        run.refresh_from_db()
        assert run.status == "waiting"
        approve(pending(two), user)
        wait_for_status(run, "completed", "failed")
    # The first command has changed no shared file, so there is no third request.
    assert ApprovalRequest.objects.count() == 2
    for child in (one, two):
        child.refresh_from_db()
        assert child.status == "completed", child.error_message
        assert f"good {child.subagent}" in output(child)


def test_a_change_of_a_shared_file_makes_an_approval_stale(tmp_path: Path) -> None:
    user, run = family_that_asks(tmp_path)
    with running_worker():
        one, two = waiting_children(run)
        first = pending(one)
        # As another subagent does: with the same account, below the same directory.
        shared = open_workspace(workspace_location(run.thread)).directories["shared"]
        (shared / "one.sh").write_text("echo evil")
        approve(first, user)
        wait_until(lambda: ApprovalRequest.objects.filter(run=one).count() > 1, "a new question")
        again = pending(one)
        first.refresh_from_db()
        assert first.status == "superseded"
        assert again.digest != first.digest
        assert not ToolCall.objects.get(run=one, tool="execute").started_at
        cancel_run(run.id, by="test")
        for member in (run, one, two):
            wait_for_status(member, "cancelled")
    assert not ApprovalRequest.objects.filter(status="pending").exists()
