"""Drivers that crash: another continues the run, and no call runs twice. Invariants 1 and 2."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError, OperationalError
from django.db.models import F

from agents.engine import crash_points
from agents.engine import drive as drive_module
from agents.engine import turns as turns_module
from agents.engine.crash_points import CrashPoint
from agents.engine.storage.lease import MAX_LOST_DRIVERS
from agents.engine.worker import Worker
from agents.features.planning import middleware as planning_module
from agents.models import Message, Run, RunClock, StateFile, ToolCall
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
    pytest.mark.both_databases,
]


class Crashed(BaseException):
    """Simulates the death of the process: no code catches it or cleans up."""


@pytest.fixture(autouse=True)
def _no_hook_left() -> Iterator[None]:
    yield
    crash_points.crash_at(None)


def crash_once(run: Run, point: CrashPoint, *, after: int = 0) -> None:
    """Drive the run until it reaches `point` for the (after + 1)th time, and crash there."""
    seen: list[CrashPoint] = []

    def hook(reached: CrashPoint) -> None:
        if reached == point:
            seen.append(point)
            if len(seen) == after + 1:
                raise Crashed

    crash_points.crash_at(hook)
    running = Worker()
    running.start()
    running.submit(run.id)
    wait_until(lambda: len(seen) > after and not running.running, f"crash at {point}")
    crash_points.crash_at(None)
    running.stop()
    # Expire the lease of the dead process now.
    RunClock.objects.filter(run=run).update(lease_until=F("lease_until") - 3600)


def a_run(tmp_path: Path) -> Run:
    user = make_user()
    model = script_file(
        tmp_path,
        [
            {"tool_calls": [
                {"name": "ls", "input": {"path": "/"}},
                {"name": "write_file", "input": {"path": "/a", "content": "alpha"}},
            ]},
            {"tool_calls": [{"name": "read_file", "input": {"path": "/a"}}]},
            {"text": "Done."},
        ],
    )  # fmt: skip
    make_agent(user, model=model)
    return start_run(user)


ELSEWHERE = (
    CrashPoint.SUMMARISED,
    CrashPoint.COMPACTED,
    CrashPoint.MODEL_DOWN,
    CrashPoint.FELL_BACK,
    CrashPoint.JOINED,
)
"""Other modules test these."""
ONCE_A_RUN = (CrashPoint.CLAIMED, CrashPoint.STARTED_WRITTEN)


@pytest.mark.parametrize(
    ("point", "after"),
    [
        (point, after)
        for point in CrashPoint
        if point not in ELSEWHERE
        for after in (0, 1)
        if point != CrashPoint.BLOCKED and (not after or point not in ONCE_A_RUN)
    ],
)
def test_a_run_continues_after_a_crash_at_any_point(
    tmp_path: Path, point: CrashPoint, after: int
) -> None:
    run = a_run(tmp_path)
    crash_once(run, point, after=after)
    run.refresh_from_db()
    assert run.status == "running"
    run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    calls = list(ToolCall.objects.filter(run=run))
    assert [call.tool for call in calls] == ["ls", "write_file", "read_file"]
    written = calls[1]
    lost = point in (CrashPoint.STARTED_WRITTEN, CrashPoint.TOOL_DONE) and written.attempt == 1
    if written.status == "interrupted":
        assert lost
        assert "Check before you repeat it" in written.result
    else:
        assert written.status == "succeeded"
    assert written.attempt == 1, "a call that writes was made twice"
    assert Message.objects.filter(run=run, role="assistant").count() == 3
    seqs = [event["seq"] for event in events(run)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert event_types(run).count("run.completed") == 1
    # Each part and each result has one event.
    ended = [
        (event["type"], event["call_id"])
        for event in events(run)
        if event["type"] in ("tool.completed", "tool.failed")
    ]
    assert len(ended) == len(set(ended)) == 3


@pytest.mark.slow
def test_an_interrupted_write_is_reported_to_the_model_and_not_repeated(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    crash_once(run, CrashPoint.STARTED_WRITTEN)
    assert not StateFile.objects.exists()
    run = drive_to_end(run)
    call = ToolCall.objects.get(run=run, tool="write_file")
    assert (call.status, call.code) == ("interrupted", "interrupted")
    assert not StateFile.objects.exists()
    assert json.loads(ToolCall.objects.get(run=run, tool="read_file").result)


def test_a_driver_that_lost_its_lease_writes_nothing_more(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    stolen: list[int] = []

    def steal(reached: CrashPoint) -> None:
        if reached == CrashPoint.REPLIED and not stolen:
            # This is the event loop's thread, where Django's ORM does not work: use another
            # connection.
            stolen.append(1)
            takeover.submit()

    class Takeover:
        def submit(self) -> None:
            import threading

            def work() -> None:
                from django.db import connection

                RunClock.objects.filter(run=run).update(fence=F("fence") + 1)
                connection.close()

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    takeover = Takeover()
    crash_points.crash_at(steal)
    with running_worker() as running:
        running.submit(run.id)
        wait_until(lambda: stolen and not running.running, "the driver to stop")
        assert not Message.objects.filter(run=run, role="assistant").exists()
    run.refresh_from_db()
    assert run.status == "running"


def test_a_run_that_ends_every_worker_is_not_tried_for_ever(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    for _ in range(3):
        crash_once(run, CrashPoint.CLAIMED)
    run.clock.refresh_from_db()
    assert run.clock.lost_drivers == 2, "the first claim was no recovery"
    RunClock.objects.filter(run=run).update(lost_drivers=MAX_LOST_DRIVERS - 1)
    run = drive_to_end(run)
    assert (run.status, run.error_code) == ("failed", "workers_lost")


@pytest.mark.slow
def test_a_reply_clears_the_count_of_lost_workers(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    crash_once(run, CrashPoint.CLAIMED)
    crash_once(run, CrashPoint.REPLY_WRITTEN)
    run.clock.refresh_from_db()
    assert run.clock.lost_drivers == 0


def test_a_run_with_unstorable_replies_is_paid_only_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    faults: list[str] = []

    async def note(
        seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        if seconds >= drive_module.FAULT_PAUSE:
            pauses.append(seconds)
            seconds = 0
        await sleep(seconds)

    def full(*arguments: object) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(turns_module, "write_reply", full)
    monkeypatch.setattr(drive_module.asyncio, "sleep", note)
    monkeypatch.setattr(drive_module, "MAX_LOST_DRIVERS", 4)
    monkeypatch.setattr(drive_module, "MAX_FAULT_PAUSE", 3.0)
    run = a_run(tmp_path)
    with running_worker(on_database_error=lambda error: faults.append(str(error))) as running:
        running.submit(run.id)
        wait_for_status(run, "failed")
    run.refresh_from_db()
    assert (run.status, run.error_code) == ("failed", "workers_lost")
    assert faults == ["database or disk is full"] * 4
    assert pauses == [0.5, 1.0, 2.0, 3.0]


def test_a_reply_that_no_database_accepts_fails_the_run_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise DataError("a value that does not fit")

    monkeypatch.setattr(turns_module, "write_reply", refuse)
    run = drive_to_end(a_run(tmp_path))
    assert (run.status, run.error_code) == ("failed", "internal_error")


@pytest.mark.slow
def test_a_database_lost_during_a_tool_call_is_not_the_tools_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = planning_module.read_plan
    asked: list[str] = []

    def once(*arguments: Any) -> Any:
        asked.append("todos")
        if len(asked) == 1:
            raise OperationalError("terminating connection due to administrator command")
        return real(*arguments)

    monkeypatch.setattr(planning_module, "read_plan", once)
    look = {"tool_calls": [{"name": "read_todos", "input": {}}]}
    owner = make_user()
    make_agent(owner, model=script_file(tmp_path, [look, {"text": "done"}]))
    run = drive_to_end(start_run(owner))
    assert run.status == "completed"
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.attempt) == ("succeeded", 2)
    assert len(asked) == 2
