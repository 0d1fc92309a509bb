"""How a run ends or parks: one transaction that takes all with it.

Invariant 3: a parked run holds nothing. The run's row is locked before its clock, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.utils import timezone

from agents.engine.journal import Call, Writer, check_fence
from agents.engine.lease import lock_and_release
from agents.engine.sql import CLOCK
from agents.events.append import EventDraft, append_events
from agents.models import ApprovalRequest, Run, RunClock, Thread, ToolCall
from agents.policy import ask_rule
from agents.services.approvals import digest_of
from agents.services.run_control import close_open_work, end_cancelled, start_next_pending
from agents.spec import AgentSpec
from agents.states import (
    RUN_TRANSITIONS,
    TOOL_CALL_TRANSITIONS,
    ApprovalStatus,
    RunStatus,
    ToolCallStatus,
    WaitReason,
    check_transition,
)


def _add_active(run_id: str, active_ms: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{CLOCK}" SET active_ms = active_ms + %s WHERE run_id = %s',
            [active_ms, run_id],
        )


def _totals(run_id: str) -> dict[str, Any]:
    clock = RunClock.objects.get(run_id=run_id)
    return {
        "usage": {
            "input_tokens": clock.input_tokens,
            "output_tokens": clock.output_tokens,
            "cache_read_tokens": clock.cache_read_tokens,
            "cache_write_tokens": clock.cache_write_tokens,
            "turns": clock.turn,
        },
        "cost": str(clock.cost) if clock.cost is not None else None,
    }


def complete_run(writer: Writer, finish_reason: str, active_ms: int) -> None:
    """The run has been answered."""
    run = lock_and_release(writer.run_id, writer.fence)
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.COMPLETED)
    _add_active(run.id, active_ms)
    run.status = RunStatus.COMPLETED
    run.finish_reason = finish_reason
    run.ended_at = timezone.now()
    run.save(update_fields=["status", "finish_reason", "ended_at"])
    append_events(run.id, [("run.completed", {"finish_reason": finish_reason, **_totals(run.id)})])
    start_next_pending(run)


def fail_run(
    writer: Writer, code: str, message: str, active_ms: int, *, retryable: bool = False
) -> None:
    """The run cannot go on. What it left open is closed; a person may resume it."""
    run = lock_and_release(writer.run_id, writer.fence)
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.FAILED)
    _add_active(run.id, active_ms)
    close_open_work(run)
    run.status = RunStatus.FAILED
    run.finish_reason = run.error_code = code
    run.error_message = message
    run.ended_at = timezone.now()
    run.save(update_fields=["status", "finish_reason", "error_code", "error_message", "ended_at"])
    failure = {"code": code, "message": message, "retryable": retryable, **_totals(run.id)}
    append_events(run.id, [("run.failed", failure)])
    start_next_pending(run)


def cancel_driven_run(writer: Writer, active_ms: int) -> None:
    """End a run that its own driver was told to cancel."""
    run = lock_and_release(writer.run_id, writer.fence)
    _add_active(run.id, active_ms)
    _end_cancelled(run)


def _end_cancelled(run: Run) -> None:
    reason = RunClock.objects.values_list("cancel_reason", flat=True).get(run_id=run.id)
    end_cancelled(run, by="request", reason=reason)


def park_for_approval(
    writer: Writer, spec: AgentSpec, calls: Sequence[Call], active_ms: int
) -> None:
    """Ask a person about each of `calls` and let go of the run.

    Invariant 4: the digest is taken here, after every call of the turn that needs nobody has
    finished, over the call, its input and the workspace generation.
    """
    run = lock_and_release(writer.run_id, writer.fence)
    _add_active(run.id, active_ms)
    if RunClock.objects.filter(run=run, cancel_requested=True).exists():
        # Nobody would look at that again before a person has decided.
        _end_cancelled(run)
        return
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.WAITING)
    generation = Thread.objects.values_list("workspace_generation", flat=True).get(pk=run.thread_id)
    rows = {
        (row.turn, row.position): row
        for row in ToolCall.objects.filter(run=run, turn=calls[0].turn)
    }
    drafts: list[EventDraft] = []
    for call in calls:
        row = rows[call.turn, call.position]
        pending = row.approvals.filter(status=ApprovalStatus.PENDING).first()
        if pending is None:
            drafts.append(_ask(run, row, spec, generation))
        if row.status != ToolCallStatus.WAITING:
            check_transition(TOOL_CALL_TRANSITIONS, row.status, ToolCallStatus.WAITING)
            row.status = ToolCallStatus.WAITING
            row.save(update_fields=["status"])
    run.status = RunStatus.WAITING
    run.wait_reason = WaitReason.APPROVAL
    run.save(update_fields=["status", "wait_reason"])
    asked = list(
        ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING).values_list(
            "id", flat=True
        )
    )
    drafts.append(("run.suspended", {"reason": "approval", "approval_ids": asked}))
    append_events(run.id, drafts)


def _ask(run: Run, row: ToolCall, spec: AgentSpec, generation: int) -> EventDraft:
    rule = ask_rule(spec, row.tool)
    earlier = row.approvals.exclude(decided_by=None).order_by("-created_at").first()
    prompt = (
        "The workspace has changed since this was approved: look at it again." if earlier else ""
    )
    shown = row.effective_input
    request = ApprovalRequest.objects.create(
        run=run,
        tool_call=row,
        tool=row.tool,
        input=shown,
        prompt=prompt,
        allowed_decisions=list(rule.allowed_decisions),
        digest=digest_of(row.tool, shown, generation),
        workspace_generation=generation,
    )
    return (
        "approval.requested",
        {
            "approval_id": request.id,
            "call_id": row.call_id,
            "tool": row.tool,
            "input": shown,
            "kind": request.kind,
            "prompt": prompt,
            "digest": request.digest,
            "allowed_decisions": request.allowed_decisions,
            "expires_at": None,
        },
    )


def approval_is_stale(writer: Writer, call: Call) -> bool:
    """Whether what a person approved is no longer what would happen. Supersedes the approval then.

    Runs in the transaction that would commit `started`.
    """
    check_fence(writer)
    request = (
        ApprovalRequest.objects.filter(
            tool_call__run_id=writer.run_id,
            tool_call__turn=call.turn,
            tool_call__position=call.position,
            status=ApprovalStatus.DECIDED,
        )
        .order_by("-created_at")
        .first()
    )
    if request is None:
        return True
    # The thread's row is locked: a sibling or another run of the thread waits, or was first.
    generation = (
        Thread.objects.select_for_update(no_key=True)
        .values_list("workspace_generation", flat=True)
        .get(pk=writer.thread_id)
    )
    if digest_of(request.tool, request.input, generation) == request.digest:
        return False
    request.status = ApprovalStatus.SUPERSEDED
    request.save(update_fields=["status"])
    return True
