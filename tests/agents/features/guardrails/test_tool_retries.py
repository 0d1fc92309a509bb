"""Read-only calls are repeated after a transient error if the agent's policy allows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.engine.crash_points import CrashPoint
from agents.features.guardrails.options import RetryOptions, RetryRule
from agents.features.planning import middleware as planning_module
from agents.models import Run, StateFile, ToolCall
from agents.services.runs.control import cancel_run
from sandbox.backends.state import StateFilesystemBackend
from tests.agents.engine.test_recovery import crash_once
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

LOOK = {"tool_calls": [{"name": "read_todos", "input": {}}]}
WRITE = {"tool_calls": [{"name": "write_file", "input": {"path": "/a", "content": "x"}}]}
DONE = {"text": "Done."}
POLICY = [{"tool": "*", "attempts": 3, "backoff": 0}]


def play(tmp_path: Path, *turns: dict[str, Any], policy: list[dict[str, Any]]) -> Run:
    user = make_user()
    model = script_file(tmp_path, [*turns, DONE])
    make_agent(user, model=model, tool_retries=policy)
    return start_run(user)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Return a function that makes the next reads of the todo list fail."""

    def let_fail(times: int, error: Exception) -> list[int]:
        real = planning_module.read_plan
        made: list[int] = []

        def read(*arguments: Any) -> Any:
            made.append(len(made) + 1)
            if len(made) <= times:
                raise error
            return real(*arguments)

        monkeypatch.setattr(planning_module, "read_plan", read)
        return made

    return let_fail


GONE = ConnectionResetError("the line is dead")


@pytest.mark.parametrize("error", [GONE, TimeoutError("too slow")])
def test_a_call_that_reads_is_made_again(
    tmp_path: Path, failing: Callable[..., list[int]], error: Exception
) -> None:
    made = failing(2, error)
    run = drive_to_end(play(tmp_path, LOOK, policy=POLICY))
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.attempt, len(made)) == ("succeeded", 3, 3)
    retried = events(run, "tool.retried")
    assert [event["attempt"] for event in retried] == [1, 2]
    assert {event["code"] for event in retried} <= {"connection", "timeout"}
    assert [event["attempt"] for event in events(run, "tool.started")] == [1, 2, 3]
    assert events(run, "tool.failed") == []


def test_attempts_come_to_an_end(tmp_path: Path, failing: Callable[..., list[int]]) -> None:
    made = failing(9, GONE)
    run = drive_to_end(play(tmp_path, LOOK, policy=POLICY))
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.code, call.attempt, len(made)) == ("failed", "connection", 3, 3)
    assert run.status == "completed"


@pytest.mark.parametrize(
    ("error", "policy"),
    [
        (ValueError("the same again"), POLICY),
        (GONE, []),
        (GONE, [{"tool": "execute*", "attempts": 3}]),
    ],
)
def test_other_errors_and_other_tools_are_not_tried_again(
    tmp_path: Path,
    failing: Callable[..., list[int]],
    error: Exception,
    policy: list[dict[str, Any]],
) -> None:
    made = failing(9, error)
    run = drive_to_end(play(tmp_path, LOOK, policy=policy))
    assert (len(made), ToolCall.objects.get(run=run).attempt) == (1, 1)


def test_a_call_that_changes_something_is_never_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def write_bytes(self: object, path: str, *arguments: Any, **more: Any) -> None:
        made.append(path)
        raise GONE

    monkeypatch.setattr(StateFilesystemBackend, "write_bytes", write_bytes)
    run = drive_to_end(play(tmp_path, WRITE, policy=POLICY))
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.code, call.attempt) == ("failed", "connection", 1)
    assert len(made) == 1
    assert not StateFile.objects.exists()


def test_a_run_can_be_stopped_while_it_waits(
    tmp_path: Path, failing: Callable[..., list[int]]
) -> None:
    made = failing(9, GONE)
    run = play(tmp_path, LOOK, policy=[{"tool": "read_todos", "attempts": 3, "backoff": 60}])
    with running_worker() as running:
        running.submit(run.id)
        wait_until(lambda: events(run, "tool.retried"), "the first attempt")
        cancel_run(run.id, by="ada")
        wait_for_status(run, "cancelled")
    assert len(made) == 1


@pytest.mark.slow
def test_attempts_are_counted_over_a_crash(
    tmp_path: Path, failing: Callable[..., list[int]]
) -> None:
    made = failing(9, GONE)
    run = play(tmp_path, LOOK, policy=POLICY)
    crash_once(run, CrashPoint.TOOL_DONE)
    assert (len(made), ToolCall.objects.get(run=run).attempt) == (3, 3)
    drive_to_end(run)
    call = ToolCall.objects.get(run=run)
    assert (call.attempt, len(made)) == (4, 4), "a call whose driver died is made once more"
    assert call.code == "connection"


def test_the_first_rule_that_fits_decides() -> None:
    rules = (
        RetryRule(tool="execute_sql", attempts=2),
        RetryRule(tool="*", attempts=5),
    )
    options = RetryOptions(tool_retries=rules)
    assert options.retry_rule("execute_sql") == rules[0]
    assert options.retry_rule("ls") == rules[1]
