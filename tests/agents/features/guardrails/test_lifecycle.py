"""Hooks are called for the events of runs, at least once, and cannot change or lose a run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from agents.engine.crash_points import CrashPoint
from agents.models import AgentVersion, EndedRun, Run, RunClock, ToolCall
from agents.services.runs.control import cancel_run, resume_run
from agents.services.runs.ends import PROGRAM_SECONDS, note_end, take_ended_run
from tests.agents.engine.by_hand import at_once, committed
from tests.agents.engine.test_recovery import crash_once
from tests.support.guards import WORD, registered, seen
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

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("frequent_looks"),
]

LOOK = {"tool_calls": [{"name": "ls", "input": {"path": "/"}}]}
WRITE = {"tool_calls": [{"name": "write_file", "input": {"path": "/a", "content": "x"}}]}
DONE = {"text": "Done."}


def play(tmp_path: Path, turns: list[dict[str, Any]], **fields: Any) -> Run:
    user = make_user()
    make_agent(user, model=script_file(tmp_path, turns), **fields)
    return start_run(user)


def names() -> list[str]:
    return [entry[0] for entry in seen]


def test_hooks_are_called_at_each_point_outside_of_transactions(tmp_path: Path) -> None:
    with registered(hooks=("Watch",)):
        run = drive_to_end(play(tmp_path, [LOOK, DONE]))
    assert run.status == "completed"
    usage = ["cache_read", "cache_write", "input", "output", "reasoning"]
    assert seen == [
        ("run_started", run.id, False),
        ("before_model_call", 1),
        ("after_model_call", 1, "tool_use", usage),
        ("before_tool", "ls", {"path": "/"}),
        ("after_tool", "ls", seen[4][2], False),
        ("before_model_call", 2),
        ("after_model_call", 2, "end_turn", usage),
        ("run_ended", run.id, "completed", ""),
    ]
    assert not EndedRun.objects.exists()


def test_hooks_are_called_for_requests_to_a_person(tmp_path: Path) -> None:
    with registered(hooks=("Watch",)):
        run = play(tmp_path, [WRITE, DONE], interrupt_on={"write_file": True})
        drive_to_end(run, until=("waiting",))
        assert seen[-1] == (
            "approval_requested",
            [("write_file", {"path": "/a", "content": "x"})],
        )
        assert "before_tool" not in names()


def test_a_hook_that_fails_is_seen_and_changes_nothing(tmp_path: Path) -> None:
    with registered(hooks=("Breaks",)):
        run = drive_to_end(play(tmp_path, [LOOK, DONE]))
        again = drive_to_end(start_run(run.owner, "Again"))
    assert [run.status, again.status] == ["completed", "completed"]
    failed = {(event["point"], event["message"]) for event in events(run, "hook.failed")}
    assert failed >= {
        ("run_started", "raised ValueError"),
        ("before_model_call", "raised RuntimeError"),
        ("before_tool", "took longer than 0.05 s"),
        ("after_tool", "took longer than 0.05 s"),
    }
    assert WORD not in str(events(run))
    assert event_types(run)[-1] == "run.completed"
    assert not EndedRun.objects.exists(), "a hook that fails is not called for ever"


def test_names_of_vel_ts_are_understood(tmp_path: Path) -> None:
    with registered(hooks=("FromVelTs",)):
        drive_to_end(play(tmp_path, [LOOK, DONE]))
        assert seen == [("onToolCall", "ls")], "an answer is no error"
        make_agent(make_user("bob"), slug="limited", max_turns=1, model=_looks(tmp_path))
        drive_to_end(start_run(make_user("eve", is_superuser=True), agent="limited"))
    assert seen == [("onToolCall", "ls")] * 2 + [("onError", "limit_turns")]


def _looks(tmp_path: Path) -> str:
    return script_file(tmp_path, [LOOK] * 9, "looks.json")


@pytest.mark.parametrize("point", [CrashPoint.REPLIED, CrashPoint.TOOL_DONE])
def test_an_interrupted_hook_is_called_again(tmp_path: Path, point: CrashPoint) -> None:
    with registered(hooks=("Watch",)):
        run = play(tmp_path, [LOOK, DONE])
        crash_once(run, point)
        run = drive_to_end(run)
    assert run.status == "completed"
    twice = ["before_model_call", "after_model_call", "before_tool", "after_tool"]
    counts = [names().count(name) for name in twice]
    assert counts == ([3, 3, 1, 1] if point == CrashPoint.REPLIED else [2, 2, 2, 2])
    assert names().count("run_ended") == 1


def test_the_end_of_a_run_is_reported_although_its_driver_died(tmp_path: Path) -> None:
    with registered(hooks=("Ends",)):
        run = play(tmp_path, [DONE])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("agents.engine.process.run_ends.EndTeller.look", lambda self: None)
            drive_to_end(run)
        assert seen == []
        with running_worker():
            wait_until(lambda: not EndedRun.objects.exists(), "the end told by another process")
    assert seen == [("run_ended", run.id, "completed", "")]


@pytest.mark.slow
@pytest.mark.both_databases
def test_the_end_of_an_undriven_run_is_reported_too(tmp_path: Path) -> None:
    with registered(hooks=("Ends",)):
        run = play(tmp_path, [DONE])
        cancel_run(run.id, by="ada")
        with running_worker():
            wait_until(lambda: seen, "the end")
    assert seen == [("run_ended", run.id, "cancelled", "")]


@pytest.mark.slow
def test_a_run_that_was_resumed_ends_once_more(tmp_path: Path) -> None:
    with registered(hooks=("Ends",)):
        run = drive_to_end(play(tmp_path, [LOOK] * 9, max_turns=1))
        resume_run(run.id)
        drive_to_end(run, until=("failed",))
        with running_worker():
            wait_until(lambda: len(seen) == 2, "both ends")
    assert seen == [("run_ended", run.id, "failed", "limit_turns")] * 2


def test_an_end_is_reported_again_if_the_reporting_process_died(tmp_path: Path) -> None:
    with registered(hooks=("Ends",)):
        run = play(tmp_path, [DONE])
        cancel_run(run.id, by="ada")
        assert committed(take_ended_run) is not None
        assert committed(take_ended_run) is None, "somebody is telling it"
        EndedRun.objects.update(due_at=timezone.now())  # simulate the time
        with running_worker():
            wait_until(lambda: not EndedRun.objects.exists(), "the end told")
    assert seen == [("run_ended", run.id, "cancelled", "")]


@pytest.mark.slow
@pytest.mark.both_databases
def test_one_process_reports_an_end(tmp_path: Path) -> None:
    run = drive_to_end(play(tmp_path, [DONE]))
    EndedRun.objects.create(run=run, due_at=timezone.now())
    taken = at_once(*[lambda: committed(take_ended_run)] * 2)
    assert [item for item in taken if isinstance(item, Exception)] == []
    assert len([item for item in taken if item is not None]) == 1


@pytest.mark.slow
@pytest.mark.both_databases
def test_ends_that_are_left_to_programs_delay_no_other(
    tmp_path: Path, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    run = drive_to_end(play(tmp_path, [DONE]))
    spec = {**run.spec, "toolkit": "tools.hooks"}
    version = AgentVersion.objects.create(agent=run.agent_version.agent, number=1_000, spec=spec)
    left = [
        Run(thread=run.thread, number=number, agent_version=version, owner=run.owner,
            status="completed", ended_at=timezone.now())
        for number in range(2, 152)
    ]  # fmt: skip
    Run.objects.bulk_create(left)
    RunClock.objects.bulk_create(RunClock(run=one) for one in left)
    with registered(hooks=("Ends",)), transaction.atomic():
        for one in (*left, run):
            note_end(one)
        with django_assert_num_queries(2):  # it reads one row and changes it
            taken = take_ended_run()
        assert taken is not None
        assert taken[1] == run
        with django_assert_num_queries(1):
            assert take_ended_run() is None
        assert EndedRun.objects.count() == 151
        EndedRun.objects.update(due_at=F("due_at") - timedelta(seconds=PROGRAM_SECONDS))
        assert take_ended_run() is not None  # their programs have ended


def test_without_hooks_nothing_is_written(tmp_path: Path) -> None:
    with registered(hooks=("Watch",)):
        pass  # earlier registrations are gone
    run = play(tmp_path, [LOOK, DONE])
    drive_to_end(run)
    assert not EndedRun.objects.exists()
    assert seen == []
    assert ToolCall.objects.filter(run=run).count() == 1
    wait_for_status(run, "completed")
