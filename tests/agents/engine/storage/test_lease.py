"""Invariant 1: one driver at a time, and a replaced driver writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Value
from django_q.models import OrmQ

from agents.engine.errors import FenceLost
from agents.engine.loading import load_run
from agents.engine.storage import journal
from agents.engine.storage import lease as storage_lease
from agents.engine.storage.finish import cancel_driven_run, complete_run, fail_run, stop_driving
from agents.engine.storage.journal import Writer, write_events, write_results, write_started
from agents.engine.storage.lease import hand_back, orphaned_runs, renew_leases
from agents.events.catalogue.messages import TextDelta
from agents.events.catalogue.tool_calls import ToolStarted
from agents.kernel import lease as kernel_lease
from agents.kernel.lease import held_clock, release_lease
from agents.models import POOL, Run, RunClock
from agents.models.database_clock import DatabaseNow
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.machines.dead_workers import end_lease, inherit_lease, leases_of
from agents.services.runs.control import cancel_run
from agents.spec import AgentSpec
from tests.agents.engine.by_hand import (
    a_call,
    at_once,
    claim,
    claimed,
    committed,
    let_lease_expire,
    new_run,
    park,
    parked,
    reply_with,
    start,
    success,
    with_calls,
)
from tests.agents.engine.invariants import check_run
from tests.support.runs import event_types

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

ROUNDS = 15
MOMENT = 2_000_000_000.5
TOOL_STARTED = ToolStarted(call_id="call_1_0", attempt=1)


def lease(run: Run) -> RunClock:
    return RunClock.objects.get(run=run)


# Claiming --------------------------------------------------------------------------------------


def test_of_two_claimers_one_gets_the_run() -> None:
    for _ in range(ROUNDS):
        _, run = new_run()
        claims = at_once(lambda run=run: claim(run, "left"), lambda run=run: claim(run, "right"))
        [winner] = [number for number, won in enumerate(claims) if won is not None]
        assert claims[winner].fence == 1
        assert lease(run).lease_holder == ("left", "right")[winner]
        check_run(run)


def test_of_two_claimers_of_a_lost_run_one_gets_it() -> None:
    for _ in range(ROUNDS):
        _, run = new_run()
        claimed(run)
        let_lease_expire(run)
        claims = at_once(lambda run=run: claim(run, "left"), lambda run=run: claim(run, "right"))
        [won] = [won for won in claims if won is not None]
        assert (won.fence, won.recovered) == (2, True)
        check_run(run)


def test_a_run_is_not_claimed_while_its_lease_holds() -> None:
    _, run = new_run()
    claimed(run)
    assert claim(run, "another") is None
    assert orphaned_runs(POOL, 10) == []
    assert lease(run).fence == 1


def test_a_lost_run_is_found_and_claimed_with_the_next_fence() -> None:
    _, run = new_run()
    claimed(run)
    let_lease_expire(run)
    assert orphaned_runs(POOL, 10) == [run.id]
    won = claim(run, "another")
    assert won is not None
    assert (won.fence, won.recovered, lease(run).lease_holder) == (2, True, "another")


def test_the_leases_of_dead_processes_are_found_by_their_names() -> None:
    names = ("h:7:aa-1", "h:8:aa-12", "h:9:ab-1", "aa:5:cli")
    leases = {}
    for name in names:
        _, run = new_run()
        assert claim(run, name)
        leases[name] = (run.pk, 1, name)
    assert committed(leases_of, []) == []
    assert committed(leases_of, ["aa-2"]) == []
    assert committed(leases_of, ["aa-1"]) == [leases["h:7:aa-1"]]
    assert committed(leases_of, ["aa"]) == [leases["h:7:aa-1"], leases["h:8:aa-12"]]
    assert committed(leases_of, ["ab", "aa-1"]) == [leases["h:7:aa-1"], leases["h:9:ab-1"]]


def test_the_lease_of_a_dead_process_is_inherited_by_one_and_ended() -> None:
    for _ in range(ROUNDS):
        _, run = new_run()
        fence = claimed(run).fence
        heirs = at_once(
            lambda run=run, fence=fence: committed(inherit_lease, run.pk, fence, "here", "left"),
            lambda run=run, fence=fence: committed(inherit_lease, run.pk, fence, "here", "right"),
        )
        assert sorted(heirs) == [False, True]
        [heir] = [name for name, won in zip(("left", "right"), heirs, strict=True) if won]
        assert claim(run, "another") is None
        committed(end_lease, run.pk, fence, heir)
        assert committed(renew_leases, {run.pk: fence}) == set()
        assert run.pk in orphaned_runs(POOL, 100)
        won = claim(run, "another")
        assert won is not None
        assert (won.fence, won.recovered) == (2, True)
        committed(end_lease, run.pk, fence, heir)
        assert not committed(inherit_lease, run.pk, fence, "here", "late")
        assert claim(run, "a third") is None


@pytest.mark.parametrize("status", ["pending", "waiting", "completed", "failed", "cancelled"])
def test_only_queued_and_running_runs_are_claimed(status: str) -> None:
    _, run = new_run()
    Run.objects.filter(pk=run.pk).update(status=status)
    assert claim(run) is None
    assert lease(run).fence == 0


def test_a_run_of_one_process_is_not_claimed_by_the_pool() -> None:
    _, run = new_run(executor="that-process")
    assert claim(run) is None
    assert orphaned_runs(POOL, 10) == []
    assert orphaned_runs("that-process", 10) == [run.id]


def test_runs_that_have_begun_are_found_before_older_new_ones() -> None:
    _, old = new_run()
    _, new = new_run()
    _, begun = new_run()
    committed(hand_back, claimed(begun))
    assert orphaned_runs(POOL, 10) == [begun.id, old.id, new.id]
    assert orphaned_runs(POOL, 1) == [begun.id]


def test_a_run_fails_with_any_message() -> None:
    _, run = new_run()
    committed(fail_run, claimed(run), "model_api", "half \ud800 and NUL \x00.", 0)
    run.refresh_from_db()
    assert run.status == "failed"
    assert run.error_message == "half ? and NUL \N{REPLACEMENT CHARACTER}."


def test_a_released_run_counts_the_time_of_its_unfinished_step() -> None:
    _, run = new_run()
    committed(stop_driving, claimed(run), 70)
    assert lease(run).active_ms == 70


def test_a_lost_run_that_is_cancelled_leaves_no_lease_behind() -> None:
    _, run = new_run()
    claimed(run)
    let_lease_expire(run)
    assert cancel_run(run.id, by="ada").status == "cancelled"
    check_run(run)
    assert orphaned_runs(POOL, 10) == []


# Renewing --------------------------------------------------------------------------------------


def test_only_the_holder_renews() -> None:
    _, run = new_run()
    claimed(run)
    before = lease(run).lease_until
    assert renew_leases({run.id: 0}) == set()
    assert renew_leases({run.id: 2}) == set()
    assert lease(run).lease_until == before
    assert renew_leases({run.id: 1}) == {run.id}
    assert lease(run).lease_until > before


def test_a_lease_that_ran_out_is_not_renewed() -> None:
    _, run = new_run()
    claimed(run)
    let_lease_expire(run)
    assert renew_leases({run.id: 1}) == set()
    assert orphaned_runs(POOL, 10) == [run.id]


def test_concurrent_renewal_and_claim_of_a_lost_run_leave_one_holder() -> None:
    for _ in range(ROUNDS):
        _, run = new_run()
        claimed(run)
        let_lease_expire(run)
        held, won = at_once(
            lambda run=run: renew_leases({run.id: 1}), lambda run=run: claim(run, "another")
        )
        assert (held, won.fence) == (set(), 2)


# Writing ---------------------------------------------------------------------------------------

Write = Callable[[Writer, Run], object]


def spec_of(run: Run) -> AgentSpec:
    return AgentSpec.model_validate(run.agent_version.spec)


WRITES: dict[str, Write] = {
    "write_events": lambda writer, run: write_events(writer, [TextDelta(part_id="1.0", text="a")]),
    "write_events without events": lambda writer, run: write_events(writer, []),
    "write_reply": lambda writer, run: reply_with(writer, [a_call(turn=2)], turn=2),
    "write_started": lambda writer, run: write_started(writer, a_call(0), []),
    "start": lambda writer, run: start(writer, a_call(0)),
    "write_results": lambda writer, run: write_results(
        writer, [success(a_call(1, status="started", effect="read"))]
    ),
    "complete_run": lambda writer, run: complete_run(writer, "end_turn", 1),
    "fail_run": lambda writer, run: fail_run(writer, "code", "message", 1),
    "cancel_driven_run": lambda writer, run: cancel_driven_run(writer, 1),
    "park_for_approval": lambda writer, run: park(writer, a_call(0)),
    "hand_back": lambda writer, run: hand_back(writer),
    "held_clock": lambda writer, run: held_clock(writer),
    "load_run": lambda writer, run: load_run(writer, run, spec_of(run), {}),
}


def all_rows() -> dict[str, list[dict[str, Any]]]:
    models = [*apps.get_app_config("agents").get_models(), OrmQ]
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}


def replaced(writer: Writer, run: Run) -> None:
    let_lease_expire(run)
    assert claim(run, "another") is not None


def expired(writer: Writer, run: Run) -> None:
    let_lease_expire(run)


def released(writer: Writer, run: Run) -> None:
    assert committed(release_lease, run.id, writer.fence)


LOSSES = (replaced, expired, released)


def a_driven_run() -> tuple[Writer, Run]:
    _, run = new_run()
    return with_calls(run, a_call(0), a_call(1, status="started", effect="read")), run


@pytest.mark.parametrize("name", WRITES)
def test_a_driver_that_lost_its_run_writes_nothing(name: str) -> None:
    for lose in LOSSES:
        writer, run = a_driven_run()
        lose(writer, run)
        before = all_rows()
        with pytest.raises(FenceLost):
            committed(WRITES[name], writer, run)
        assert all_rows() == before, lose.__name__
    # The fence was the only reason: the holder may write.
    writer, run = a_driven_run()
    committed(WRITES[name], writer, run)


def test_a_replaced_driver_cannot_take_an_approval_away() -> None:
    """The new driver has changed the workspace, so the approval seems stale to the old driver."""
    user, run = new_run()
    [request] = parked(run)
    decide_approval(request.id, DecisionRequest("approve", request.digest), by=user)
    old = claimed(run)
    let_lease_expire(run)
    new = claimed(run)
    call = a_call(0, status="approved")
    assert committed(start, new, call)
    with pytest.raises(FenceLost):
        committed(start, old, call)
    request.refresh_from_db()
    assert request.status == "decided"


def test_a_run_that_was_deleted_stops_its_driver() -> None:
    for write in WRITES.values():
        writer, run = a_driven_run()
        assert spec_of(run)
        Run.objects.filter(pk=run.pk).delete()
        with pytest.raises(FenceLost):
            committed(write, writer, run)


def test_after_the_expiry_of_a_lease_a_claim_wins_against_a_write() -> None:
    for _ in range(ROUNDS):
        _, run = new_run()
        writer = with_calls(run, a_call(0))
        let_lease_expire(run)
        started, won = at_once(
            lambda writer=writer: committed(write_started, writer, a_call(0), []),
            lambda run=run: claim(run, "another"),
        )
        assert isinstance(started, FenceLost)
        assert won.fence == 2
        check_run(run)


def test_no_write_follows_a_claim_at_the_moment_of_expiry() -> None:
    for round_ in range(ROUNDS):
        _, run = new_run()
        writer = with_calls(run, a_call(0))
        # The lease expires while both are at work.
        moment = DatabaseNow() + Value(round_ / 1000)
        RunClock.objects.filter(run=run).update(lease_until=moment)
        at_once(
            lambda writer=writer: committed(write_started, writer, a_call(0), [TOOL_STARTED]),
            lambda run=run: claim(run, "another"),
        )
        types = event_types(run)
        if {"tool.started", "run.resumed"} <= {*types}:
            assert types.index("tool.started") < types.index("run.resumed")
        check_run(run)


def test_at_the_moment_of_expiry_the_lease_has_no_holder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, run = new_run()
    writer = with_calls(run, a_call(0))
    RunClock.objects.filter(run=run).update(lease_until=MOMENT)
    for module in (journal, kernel_lease, storage_lease):
        monkeypatch.setattr(module, "now_sql", lambda: str(MOMENT))
    with pytest.raises(FenceLost):
        committed(write_started, writer, a_call(0), [])
    with pytest.raises(FenceLost):
        committed(held_clock, writer)
    assert not committed(release_lease, run.pk, writer.fence)
    assert committed(renew_leases, {run.pk: writer.fence}) == set()
    assert claim(run, "another") is None
    assert committed(orphaned_runs, POOL, 10, None) == []


def test_the_first_event_names_the_message_and_the_model() -> None:
    _, run = new_run()
    claimed(run)
    started = json.loads(run.events.get(seq=1).data)
    assert started["message_id"] == run.messages.get().pk
    assert (started["agent"], started["attempt"]) == ("tester", 1)
