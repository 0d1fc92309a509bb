"""Invariants of a run's rows, true between any two transactions of any writer."""

from __future__ import annotations

import json
from collections import Counter

from django_q.models import OrmQ

from agents.features.budgets.models import RunBudget
from agents.models import ApprovalRequest, Message, Run, RunClock, RunEvent, ToolCall
from agents.states import ACTIVE_RUNS, ENDED_RUNS, OPEN_CALLS, ToolCallStatus

ENDS = ("run.completed", "run.failed", "run.cancelled")
CALL_ENDS = ("tool.completed", "tool.failed", "tool.denied", "tool.rejected")


def check_run(run: Run) -> None:
    """Raise AssertionError if the rows of `run` contradict each other or its status."""
    run.refresh_from_db()
    clock = RunClock.objects.get(run=run)
    asked = ApprovalRequest.objects.filter(run=run, status="pending")
    pending = asked.exclude(kind="budget")
    calls = list(ToolCall.objects.filter(run=run))
    waiting = {call.pk for call in calls if call.status == ToolCallStatus.WAITING}
    assert set(pending.values_list("tool_call", flat=True)) == waiting
    assert (run.wait_reason != "") == (run.status == "waiting")
    assert (run.ended_at is not None) == run.has_ended
    if run.status == "running":
        assert clock.lease_until is not None, "a running run without a lease"
    else:
        assert (clock.lease_until, clock.lease_holder) == (None, ""), run.status
    if run.status == "waiting":
        still = run.children.filter(is_awaited=True).exclude(status__in=ENDED_RUNS)
        on_children = run.wait_reason == "children"
        if run.wait_reason == "budget":
            check_budget_is_asked(run)
        else:
            assert still.exists() if on_children else waiting, "a run waits for nothing"
        assert not clock.cancel_requested, "a cancellation was lost"
    if run.has_ended:
        assert not [call for call in calls if call.status in OPEN_CALLS]
        assert run.status == "failed" or not waiting
        assert not asked.filter(kind="budget").exists()
        held = RunBudget.objects.filter(run=run).exclude(reserved_from="")
        assert not held, "an ended run keeps a reservation"
    assert run.wake_at is None or run.wait_reason in ("children", "budget")
    if run.status == "pending" and run.parent is None:
        active = Run.objects.filter(thread=run.thread_id, parent=None, status__in=ACTIVE_RUNS)
        assert active.exists(), "a message waits for a thread that is free"
    if run.status == "queued" and run.executor == "pool":
        tasks = OrmQ.objects.all()
        assert any(task.task["args"] == (run.id,) for task in tasks), "nobody was told"
    for call in calls:
        check_call(call)
    check_events(run, clock)


def check_budget_is_asked(run: Run) -> None:
    """Check that one request for a higher limit is pending, for the run or an ancestor."""
    allowance = run.budget.waits_for
    assert allowance is not None
    asked = ApprovalRequest.objects.filter(budget_request__allowance=allowance, status="pending")
    above = run
    while above.parent is not None:
        above = above.parent
    assert asked.filter(run=allowance.run or above).count() == 1


def check_family(parent: Run) -> None:
    """Raise AssertionError if a run's rows contradict those of its children."""
    children = list(parent.children.select_related("clock"))
    active = [child for child in children if child.status in ACTIVE_RUNS]
    asked = [child.pk for child in active if child.clock.cancel_requested]
    if parent.has_ended:
        left = [child for child in children if not child.has_ended and child.pk not in asked]
        assert not left, "a run has ended, and its calls continue"
    elif children:
        limit = parent.spec.get("max_concurrent_subagents", 5)
        assert len(active) <= limit
        if any(child.status == "pending" for child in children):
            assert len(active) == limit, "a child waits, and there is room"
    events = RunEvent.objects.filter(run=parent, type__startswith="subagent.")
    seen = Counter((row.type, json.loads(row.data)["child_run_id"]) for row in events)
    assert set(seen.values()) <= {1}
    for child in children:
        assert seen["subagent.started", child.pk] == 1
        ended_before = child.has_ended and not parent.has_ended
        assert not ended_before or seen["subagent.finished", child.pk], "its end was not told"


def check_call(call: ToolCall) -> None:
    finished = call.status not in OPEN_CALLS
    assert finished == (call.finished_at is not None), (call.status, call.finished_at)
    if call.status == ToolCallStatus.STARTED or call.attempt:
        assert call.started_at is not None
    if call.effect != "read":
        assert call.attempt <= 1, f"{call} was made {call.attempt} times"
    if call.status == ToolCallStatus.SUCCEEDED:
        assert call.attempt
        assert call.result


def check_events(run: Run, clock: RunClock) -> None:
    """Check that the log is complete and has each end once."""
    events = list(RunEvent.objects.filter(run=run).order_by("seq").values_list("seq", "type"))
    assert [seq for seq, _ in events] == list(range(1, clock.seq + 1))
    types = [kind for _, kind in events]
    ends = [kind for kind in types if kind in ENDS]
    resumed = Counter(types)["run.resumed"]
    assert len(ends) <= 1 + resumed
    if run.has_ended:
        assert types[-1] == f"run.{run.status}"
    assert Counter(types)["run.started"] <= 1
    check_progress(run)


def check_progress(run: Run) -> None:
    """Check that the output of a call does not come after its end."""
    ended = set()
    for event in RunEvent.objects.filter(run=run, type__startswith="tool.").order_by("seq"):
        call = json.loads(event.data).get("call_id")
        assert event.type != "tool.progress" or call not in ended, (call, event.seq)
        if event.type in CALL_ENDS:
            ended.add(call)


def check_messages(run: Run) -> None:
    """Check that there is one reply for each turn, without gaps."""
    turns = list(
        Message.objects.filter(run=run, role="assistant").order_by("id").values_list("turn")
    )
    assert turns == [(number,) for number in range(1, len(turns) + 1)]
