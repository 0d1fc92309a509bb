"""Cancellations and limits: runs that end without an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import ToolCall
from agents.services.runs.control import cancel_run, resume_run
from tests.agents.engine.test_model_faults import ANSWER, LOOK, served
from tests.support.messages_script import Fault, Turn
from tests.support.runs import (
    drive_to_end,
    event_types,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_queued_run_is_cancelled_immediately() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user)
    assert cancel_run(run.id, by="ada").status == "cancelled"
    assert event_types(run) == ["run.cancelled"]


def test_cancelling_in_the_middle_of_a_stream_closes_the_connection() -> None:
    user = make_user()
    with served([Turn(text="Never ending", fault=Fault("hang_mid_stream"))]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = start_run(user)
        with running_worker() as running:
            running.submit(run.id)
            assert server.wait_for(requests=1)
            cancel_run(run.id, by="ada", reason="enough")
            wait_for_status(run, "cancelled")
            assert server.wait_for(gone=1)
    assert event_types(run)[-1] == "run.cancelled"


@pytest.mark.bubblewrap
def test_cancelling_in_the_middle_of_a_command_kills_it(tmp_path: Path) -> None:
    user = make_user()
    command = "echo started; sleep 600; echo survived > /sandbox/outputs/late"
    model = script_file(
        tmp_path,
        [{"tool_calls": [{"name": "execute", "input": {"command": command, "timeout": 600}}]}],
    )
    make_agent(user, model=model, sandbox=True)
    run = start_run(user)
    with running_worker() as running:
        running.submit(run.id)
        wait_until(lambda: "tool.progress" in event_types(run), "output of the command")
        cancel_run(run.id, by="ada")
        wait_for_status(run, "cancelled")
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.code) == ("cancelled", "cancelled")
    assert "stopped half-way" in call.result


def test_cancelling_twice_is_allowed_and_changes_nothing() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user)
    cancel_run(run.id, by="ada")
    cancel_run(run.id, by="ada")
    assert event_types(run) == ["run.cancelled"]


def test_the_limit_of_turns_ends_the_run_with_its_name() -> None:
    user = make_user()
    with served([LOOK] * 4 + [ANSWER]):
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5", max_turns=3)
        run = drive_to_end(start_run(user))
    run.clock.refresh_from_db()
    assert (run.status, run.finish_reason, run.clock.turn) == ("failed", "limit_turns", 3)
    assert "limit" in run.error_message


def test_wall_time_ends_a_hanging_model_call() -> None:
    user = make_user()
    with served([Turn(text="Never", fault=Fault("hang_mid_stream"))]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5", max_seconds=2)
        run = drive_to_end(start_run(user))
        # On a busy machine the time can run out before the model call.
        assert server.wait_for(gone=len(server.requests))
    assert (run.status, run.finish_reason) == ("failed", "limit_seconds")


def test_a_failed_run_continues_when_it_is_resumed() -> None:
    user = make_user()
    fault = Turn(fault=Fault("status", 400, "invalid_request_error", "not now"))
    with served([LOOK, fault, ANSWER]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = drive_to_end(start_run(user))
        assert run.status == "failed"
        resume_run(run.id)
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert run.clock.turn == 2 or run.clock.refresh_from_db() is None


@pytest.mark.slow
def test_a_message_to_a_busy_thread_waits_for_its_turn(tmp_path: Path) -> None:
    user = make_user()
    make_agent(user)
    first = start_run(user, "One", key="s")
    second = start_run(user, "Two", key="s", queue=True)
    assert second.status == "pending"
    with running_worker() as running:
        running.submit(first.id)
        wait_for_status(first, "completed")
        wait_for_status(second, "completed")


def test_a_drained_host_hands_its_runs_back() -> None:
    user = make_user()
    with served([Turn(text="Slow", fault=Fault("hang_mid_stream")), ANSWER]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = start_run(user)
        with running_worker() as running:
            running.submit(run.id)
            assert server.wait_for(requests=1)
            running.stop(grace=0)
        run.refresh_from_db()
        assert run.status == "queued"
        run = drive_to_end(run)
    assert run.status == "completed"
    types = event_types(run)
    assert types.count("step.started") - types.count("step.reset") == 1
