"""The demo's run: its calls, its visibility, and its error messages."""

from __future__ import annotations

import csv
import os
import sqlite3
from contextlib import closing

import pytest
from django.test import override_settings

from agents.demo.task import (
    DATA_NAME,
    DATA_PATH,
    OUTPUTS,
    PLAIN,
    Program,
    data_bytes,
    database_path,
)
from agents.engine.files.workspaces import ThreadFiles
from agents.middleware.decisions import decide
from agents.models import Agent, Message, Run, ToolCall
from agents.providers.scripts import demo
from agents.selectors.visible import agents_for
from agents.services.agent_definitions.actions import current_version
from agents.services.approvals.decisions import DecisionRequest
from agents.services.demo import ensure_demo_agent, read_demo_outputs, start_demo_run
from agents.services.errors import Conflict
from agents.services.files.workspaces import open_workspace, workspace_backend, workspace_location
from sandbox.errors import SandboxSetupError, SandboxUnavailable
from tests.agents.demo.played import asked, has_ended, play_at_once, play_demo
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    running_worker,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


def replies(run: Run) -> list[str]:
    found = Message.objects.filter(run=run, role="assistant").order_by("turn")
    return [message.text for message in found]


def answer(run: Run) -> str:
    return replies(run)[-1]


def calls(run: Run) -> list[ToolCall]:
    return list(ToolCall.objects.filter(run=run).order_by("turn", "position"))


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_the_demo_plans_works_and_ticks_everything_off(monkeypatch: pytest.MonkeyPatch) -> None:
    run = play_demo(monkeypatch)
    assert (run.status, run.finish_reason) == ("completed", "end_turn")
    made = calls(run)
    assert made[0].tool == "write_todos"
    assert {call.tool for call in made} == {
        *("write_todos", "ls", "read_file", "grep", "execute_python", "execute"),
        *("write_file", "edit_file", "list_tables", "load_skill", "execute_sql"),
        "parallel_tasks",
    }
    assert {call.status for call in made} == {"succeeded"}
    assert 8 <= run.clock.turn <= 13
    plans = [event["todos"] for event in events(run, "todos.updated")]
    done = [sum(todo["status"] == "completed" for todo in plan) for plan in plans]
    assert done == list(range(len(demo.STEPS) + 1)), "one step after another"
    assert {todo.status for todo in run.thread.todos.all()} == {"completed"}
    assert answer(run).startswith("Done.")
    assert all(name in answer(run) for name in PLAIN.outputs)
    outputs = read_demo_outputs(run)
    assert set(outputs) == set(PLAIN.outputs)
    says_that_it_is_the_offline_model(run)
    repeats_the_findings(run, outputs["report.md"].decode())
    was_checked_by_two_subagents(run)


def says_that_it_is_the_offline_model(run: Run) -> None:
    assert replies(run)[0].startswith("I am the offline scripted model")
    assert "offline scripted model" in answer(run)


def repeats_the_findings(run: Run, report: str) -> None:
    findings = [line for line in report.splitlines() if line.startswith("- **")]
    assert findings
    assert all(line in answer(run) for line in findings)


def was_checked_by_two_subagents(run: Run) -> None:
    """Each subagent checks the figures in its own way."""
    children = list(Run.objects.filter(parent=run).order_by("parent_index"))
    assert [child.status for child in children] == ["completed", "completed"]
    assert [{call.tool for call in calls(child)} for child in children] == [
        {"execute"},
        {"execute_sql", "read_file"},
    ]
    assert "0 differ" in answer(children[0])
    assert answer(children[1]) == "12 months compared, 0 differ."
    assert "Both agree." in "\n".join(replies(run))


def test_the_data_is_in_place_before_the_run_can_be_claimed() -> None:
    run = start_demo_run(make_user())
    workspace = open_workspace(workspace_location(run.thread))
    assert workspace_backend(workspace).read_bytes(DATA_PATH, 10**6).startswith(b"date,")
    status = (workspace.root / "user_uploads" / DATA_NAME).stat()
    assert status.st_uid == workspace.uid
    if os.geteuid() == 0:
        assert status.st_uid != 0


def test_a_workspace_that_cannot_be_made_leaves_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(location: object) -> None:
        raise SandboxSetupError("the directory for workspaces cannot be made")

    monkeypatch.setattr("agents.services.demo.open_workspace", refuse)
    with pytest.raises(SandboxSetupError):
        start_demo_run(make_user())
    assert not Run.objects.exists()


def test_the_agent_is_made_once_and_the_operators_changes_stay() -> None:
    agent = ensure_demo_agent()
    agent.system_prompt = "Be brief."
    agent.save()
    assert ensure_demo_agent().system_prompt == "Be brief."
    assert Agent.objects.count() == 1
    assert agent in agents_for(make_user())


def test_without_a_key_it_is_scripted_and_with_one_it_is_claude() -> None:
    agent = ensure_demo_agent()
    spec = current_version(agent).spec
    assert (spec["provider"], spec["model"]) == ("scripted", "demo")
    with override_settings(VEL={"ANTHROPIC_API_KEY": "a-key"}):
        spec = current_version(agent).spec
    assert spec["provider"] == "anthropic"
    assert spec["model"].startswith("claude-")


def test_somebody_elses_agent_of_that_name_is_not_used() -> None:
    owner = make_user()
    make_agent(owner, slug="demo")
    with pytest.raises(Conflict):
        start_demo_run(owner)
    assert not Run.objects.exists()


@pytest.mark.slow
def test_without_a_sandbox_it_stops_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(self: ThreadFiles, timeout: float) -> None:
        raise SandboxUnavailable("bubblewrap is not installed")

    monkeypatch.setattr(ThreadFiles, "sandbox", unavailable)
    run = play_demo(monkeypatch)
    assert "the task is not done" in answer(run)
    assert "bubblewrap is not installed" in answer(run)
    assert read_demo_outputs(run) == {}
    assert "completed" not in {todo.status for todo in run.thread.todos.all()[1:]}


def test_an_empty_file_is_not_an_output() -> None:
    run = start_demo_run(make_user())
    files = workspace_backend(open_workspace(workspace_location(run.thread)))
    files.write_bytes(f"{OUTPUTS}/report.md", b"")
    files.write_bytes(f"{OUTPUTS}/chart.svg", b"<svg/>")
    assert read_demo_outputs(run) == {"chart.svg": b"<svg/>"}


def test_without_its_data_it_stops_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    play_at_once(monkeypatch)
    ensure_demo_agent()
    run = drive_to_end(start_run(make_user(), PLAIN.text, agent="demo"))
    assert "the task is not done" in answer(run)
    assert DATA_PATH in answer(run)


@pytest.mark.bubblewrap
def test_figures_that_the_check_finds_wrong_end_it_before_there_is_a_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program(name: Program) -> str:
        text = real(name)
        return text.replace('high"] >= HOT', 'high"] > HOT + 1') if name == "analyse.py" else text

    real = demo.program
    monkeypatch.setattr(demo, "program", program)
    run = play_demo(monkeypatch)
    assert "the task is not done" in answer(run)
    assert "hot_days" in answer(run)
    assert read_demo_outputs(run) == {}


def test_other_messages_are_answered_with_an_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    play_at_once(monkeypatch)
    ensure_demo_agent()
    run = drive_to_end(start_run(make_user(), "Write a haiku", agent="demo"))
    assert run.status == "completed"
    assert "offline scripted model" in answer(run)
    assert "vel demo" in answer(run)
    assert answer(run).endswith("Write a haiku")
    assert calls(run) == []


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_the_report_is_published_only_when_a_person_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    play_at_once(monkeypatch)
    user = make_user()
    run = start_demo_run(user)
    with running_worker(executor=run.executor) as running:
        running.submit(run.id)
        wait_until(lambda: has_ended(run) or asked(run), "the report to be asked about")
        request = asked(run)[0]
        assert (request.tool, request.input["path"]) == ("write_file", f"{OUTPUTS}/report.md")
        assert request.input["content"].startswith("# When is Seattle dry?")
        assert "report.md" not in read_demo_outputs(run)
        no = DecisionRequest(decision="reject", digest=request.digest, reason="Not yet.")
        decide(request.pk, no, by=user)
        wait_for_status(run, "completed", "failed")
    assert "Not yet." in answer(run)
    assert "report.md" not in read_demo_outputs(run)


def test_the_database_has_the_days_of_the_file() -> None:
    rows = csv.DictReader(data_bytes().decode().splitlines())
    uri = f"{database_path().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        days = connection.execute("SELECT * FROM days ORDER BY date").fetchall()
        words = {word for (word,) in connection.execute("SELECT word FROM words")}
    given = [
        (row["date"].replace("/", "-"), *map(float, list(row.values())[1:5]), row["weather"])
        for row in rows
    ]
    assert days == given
    assert {row[5] for row in given} <= words
