"""What must be true of a run's rows between any two transactions, whoever wrote them."""

from __future__ import annotations

from collections import Counter

from django_q.models import OrmQ

from agents.models import ApprovalRequest, Message, Run, RunClock, RunEvent, ToolCall
from agents.states import ACTIVE_RUNS, OPEN_CALLS, ToolCallStatus

ENDS = ("run.completed", "run.failed", "run.cancelled")
CALL_ENDS = ("tool.completed", "tool.failed", "tool.denied", "tool.rejected")


def check_run(run: Run) -> None:
    """Raise AssertionError if the rows of `run` contradict each other or its status."""
    run.refresh_from_db()
    clock = RunClock.objects.get(run=run)
    pending = ApprovalRequest.objects.filter(run=run, status="pending")
    calls = list(ToolCall.objects.filter(run=run))
    waiting = {call.pk for call in calls if call.status == ToolCallStatus.WAITING}
    assert set(pending.values_list("tool_call", flat=True)) == waiting
    assert (run.wait_reason != "") == (run.status == "waiting")
    assert (run.ended_at is not None) == run.has_ended
    if run.status == "running":
        assert clock.lease_until is not None, "a running run nobody has a lease of"
    else:
        assert (clock.lease_until, clock.lease_holder) == (None, ""), run.status
    if run.status == "waiting":
        assert waiting, "a run waits for nothing"
        assert not clock.cancel_requested, "a cancellation was lost"
    if run.has_ended:
        assert not [call for call in calls if call.status in OPEN_CALLS]
        assert run.status == "failed" or not waiting
    if run.status == "pending":
        active = Run.objects.filter(thread=run.thread_id, parent=None, status__in=ACTIVE_RUNS)
        assert active.exists(), "a message waits for a thread that is free"
    if run.status == "queued" and run.executor == "pool":
        tasks = OrmQ.objects.all()
        assert any(task.task["args"] == (run.id,) for task in tasks), "nobody was told"
    for call in calls:
        check_call(call)
    check_events(run, clock)


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
    """The log is complete and tells each ending once."""
    events = list(RunEvent.objects.filter(run=run).order_by("seq").values_list("seq", "type"))
    assert [seq for seq, _ in events] == list(range(1, clock.seq + 1))
    types = [kind for _, kind in events]
    ends = [kind for kind in types if kind in ENDS]
    resumed = Counter(types)["run.resumed"]
    assert len(ends) <= 1 + resumed
    if run.has_ended:
        assert types[-1] == f"run.{run.status}"
    assert Counter(types)["run.started"] <= 1


def check_messages(run: Run) -> None:
    """One reply a turn, without gaps."""
    turns = list(
        Message.objects.filter(run=run, role="assistant").order_by("id").values_list("turn")
    )
    assert turns == [(number,) for number in range(1, len(turns) + 1)]
