"""Delegation: children are separate runs, and their parent parks until they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.features.subagents.models import Subagent
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run, Thread, ToolCall
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest
from agents.states import ENDED_RUNS
from skills_app.models import SkillVersion, Trust
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)
from tests.support.skills import write_skill

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("frequent_looks"),
]


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"name": tool, "input": given}


def delegating(tmp_path: Path, *turns: dict[str, Any], **fields: Any) -> Run:
    """Run `turns` with the subagents `echo` and `broken`, which have their own models."""
    user = make_user()
    broken = f"file:{tmp_path}/there-is-none.json"
    rows = [
        Subagent(name="echo", description="Says it again.", model="echo"),
        Subagent(name="broken", description="Has no script.", model=broken),
    ]
    agent = make_agent(user, model=script_file(tmp_path, list(turns)), **fields)
    save_agent(agent, related={"subagents": rows})
    return start_run(user)


def result_of(run: Run, turn: int = 1, position: int = 0) -> Any:
    row = ToolCall.objects.get(run=run, turn=turn, position=position)
    content = row.result_content
    assert isinstance(content, str)
    return json.loads(content) if content.startswith(("{", "[")) else content


@pytest.mark.slow
def test_a_task_is_a_separate_run_with_its_answer_as_result(tmp_path: Path) -> None:
    turn = {
        "tool_calls": [call("task", subagent="echo", task="Count to three.", context="Slowly.")]
    }
    run = drive_to_end(delegating(tmp_path, turn, {"text": "Done."}))
    assert run.status == "completed", run.error_message
    child = Run.objects.get(parent=run)
    assert (child.status, child.depth, child.subagent) == ("completed", 1, "echo")
    assert child.thread != run.thread
    assert child.thread.root == run.thread
    result = result_of(run)
    assert result["subagent"] == "echo"
    assert "Count to three." in result["result"]
    assert "Slowly." in result["result"]
    kinds = event_types(run)
    assert kinds.index("subagent.started") < kinds.index("run.suspended")
    assert kinds.index("subagent.finished") < kinds.index("run.resumed")
    assert events(run, "run.suspended")[0]["child_run_ids"] == [child.id]


@pytest.mark.slow
@pytest.mark.both_databases
def test_results_come_in_the_order_of_the_tasks_and_one_failure_is_one_result(
    tmp_path: Path,
) -> None:
    tasks = [
        {"subagent": "echo", "task": "first"},
        {"subagent": "broken", "task": "second"},
        {"subagent": "nobody", "task": "third"},
        {"subagent": "echo", "task": "fourth"},
    ]
    turn = {"tool_calls": [call("parallel_tasks", tasks=tasks)]}
    run = drive_to_end(delegating(tmp_path, turn, {"text": "Done."}))
    assert run.status == "completed", run.error_message
    result = result_of(run)
    assert [item.get("status") for item in result["results"]] == [
        "completed",
        "failed",
        None,
        "completed",
    ]
    assert "first" in result["results"][0]["result"]
    assert "nobody" in result["results"][2]["error"]
    assert "fourth" in result["results"][3]["result"]
    assert (result["task_count"], result["success_count"]) == (4, 2)
    assert [error[:7] for error in result["errors"]] == ["task 2:", "task 3:"]
    assert Run.objects.filter(parent=run).count() == 3


@pytest.mark.slow
def test_children_over_the_concurrency_limit_wait(tmp_path: Path) -> None:
    tasks = [{"subagent": "echo", "task": f"task {number}"} for number in range(7)]
    turn = {"tool_calls": [call("parallel_tasks", tasks=tasks)]}
    run = delegating(tmp_path, turn, {"text": "Done."}, max_concurrent_subagents=2)
    run = drive_to_end(run)
    assert result_of(run)["success_count"] == 7
    started = [event["status"] for event in events(run, "subagent.started")]
    assert started == ["queued"] * 2 + ["pending"] * 5


@pytest.mark.slow
def test_a_background_task_is_awaited_by_its_id(tmp_path: Path) -> None:
    run = delegating(
        tmp_path,
        {"tool_calls": [call("spawn_subagent", task="count", agent="echo")]},
        {"tool_calls": [call("wait_subagent", id="wrong")]},
        {"text": "Done."},
        background_subagents=True,
    )
    run = drive_to_end(run)
    child = Run.objects.get(parent=run)
    started = result_of(run, 1)
    assert (started["id"], started["agent_type"]) == (child.id, "echo")
    assert "no subagent with the id" in result_of(run, 2)


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_run_that_ends_takes_its_subagents_with_it(tmp_path: Path) -> None:
    slow = script_file(tmp_path, [{"text": "never", "delay": 60}], "slow.json")
    run = delegating(
        tmp_path,
        {"tool_calls": [call("spawn_subagent", task="wait", agent="echo")]},
        {"text": "I do not wait."},
        background_subagents=True,
    )
    agent = run.thread.agent
    save_agent(
        agent, related={"subagents": [Subagent(name="echo", description="Slow.", model=slow)]}
    )
    run.delete()
    run = start_run(agent.owner)
    run = drive_to_end(run)
    assert run.status == "completed"
    child = Run.objects.get(parent=run)
    assert child.status == "cancelled" or child.clock.cancel_requested
    assert [event["status"] for event in events(run, "subagent.finished")] == ["cancelled"]


def test_a_subagent_has_no_subagents_and_never_more_tools_than_its_parent(
    tmp_path: Path,
) -> None:
    turn = {"tool_calls": [call("task", subagent="explore", task="look")]}
    run = delegating(tmp_path, turn, {"text": "Done."}, tools=["task", "ls", "write_file"])
    run = drive_to_end(run)
    child = Run.objects.get(parent=run)
    assert child.spec["tools"] == ["ls"]
    assert child.spec["subagent_depth"] == 0
    assert child.spec["read_only"] is True
    assert child.spec["max_turns"] == 30
    assert Thread.objects.filter(root=run.thread).count() == 1
    assert Run.objects.exclude(status__in=ENDED_RUNS).count() == 0


def test_an_answer_is_not_lost_if_a_skill_goes_into_quarantine(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory)
    play = [{"tool_calls": [call("write_file", path="/a", content="x")]}, {"text": "Counted."}]
    worker = Subagent(
        name="worker",
        description="Counts.",
        model=script_file(tmp_path, play, "worker.json"),
        skills=["beans"],
    )
    turn = {"tool_calls": [call("task", subagent="worker", task="Count.")]}
    run = delegating(tmp_path, turn, {"text": "Done."}, interrupt_on={"write_file": True})
    agent, owner = run.thread.agent, run.owner
    run.delete()
    save_agent(agent, related={"subagents": [worker]})
    run = start_run(owner, skill_directories=(str(directory),))
    with running_worker():
        request = wait_until(ApprovalRequest.objects.first, "the subagent's question")
        wait_for_status(run, "waiting")
        SkillVersion.objects.filter(skill__name="beans").update(trust=Trust.QUARANTINED)
        decide(request.id, DecisionRequest("approve", request.digest), by=owner)
        wait_for_status(run, "completed", "failed")
    assert result_of(run)["result"] == "Counted."
