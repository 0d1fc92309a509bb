"""Park a run: one transaction that releases it, ends it, or changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agents.engine.storage.finish import fail_run
from agents.events.catalogue.tool_calls import ToolDenied
from agents.kernel.lease import FenceLost, Writer
from agents.kernel.park import End, Locked, Park, Suspend, park
from agents.models import Run, RunClock, RunEvent
from agents.states import RunStatus, WaitReason
from tests.agents.engine.by_hand import claimed, committed, let_lease_expire, new_run

pytestmark = pytest.mark.django_db(transaction=True)


def waiting(settle: Callable[[Locked], Suspend | End | None]) -> Park:
    return Park(WaitReason.APPROVAL, settle)


def events(run: Run) -> list[tuple[str, dict[str, object]]]:
    rows = RunEvent.objects.filter(run=run).order_by("seq")
    return [(row.type, json.loads(row.data)) for row in rows]


def parked(writer: Writer, parking: Park, active_ms: int = 7) -> bool:
    return committed(park, writer, parking, active_ms, fail_run)


def test_a_parked_run_holds_nothing_and_counts_its_work() -> None:
    _, run = new_run()
    writer = claimed(run)
    denied = ToolDenied(call_id="c", reason="No.")
    suspend = Suspend({"approval_ids": ["3"]}, [denied], wake_at=12.5)
    assert parked(writer, waiting(lambda locked: suspend))
    run.refresh_from_db()
    assert (run.status, run.wait_reason, run.wake_at) == ("waiting", "approval", 12.5)
    clock = RunClock.objects.get(run=run)
    assert (clock.lease_until, clock.lease_holder, clock.active_ms) == (None, "", 7)
    assert events(run)[1:] == [
        ("tool.denied", {"call_id": "c", "reason": "No."}),
        ("run.suspended", {"reason": "approval", "approval_ids": ["3"]}),
    ]


def test_nothing_to_wait_for_leaves_the_run_with_its_driver() -> None:
    _, run = new_run()
    writer = claimed(run)
    assert not parked(writer, waiting(lambda locked: None))
    run.refresh_from_db()
    clock = RunClock.objects.get(run=run)
    assert (run.status, clock.active_ms) == ("running", 0)
    assert clock.lease_until is not None
    assert len(events(run)) == 1


def test_a_park_that_cannot_wait_can_fail_the_run() -> None:
    _, run = new_run()
    writer = claimed(run)
    assert parked(writer, waiting(lambda locked: End("no_more", "There is no more.")))
    run.refresh_from_db()
    assert (run.status, run.error_code) == ("failed", "no_more")
    assert RunClock.objects.get(run=run).active_ms == 7


def test_a_cancel_that_came_first_ends_the_run_and_asks_nothing() -> None:
    def settle(locked: Locked) -> Suspend:
        raise AssertionError("a cancelled run must not ask")

    _, run = new_run()
    writer = claimed(run)
    RunClock.objects.filter(run=run).update(cancel_requested=True)
    assert parked(writer, waiting(settle))
    run.refresh_from_db()
    assert run.status == "cancelled"


def test_a_driver_that_has_lost_its_run_writes_nothing() -> None:
    _, run = new_run()
    writer = claimed(run)
    let_lease_expire(run)
    with pytest.raises(FenceLost):
        parked(writer, waiting(lambda locked: Suspend()))
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    assert len(events(run)) == 1


def test_it_locks_the_runs_that_a_feature_names() -> None:
    _, other = new_run()
    _, run = new_run()
    writer = claimed(run)
    seen: list[set[str]] = []

    def settle(locked: Locked) -> None:
        seen.append(set(locked.runs))
        assert locked.runs[run.pk] is locked.run

    assert not parked(writer, Park("budget", settle, locks=[other.pk, run.pk]))
    assert seen == [{other.pk, run.pk}]
