"""Ending runs before their answer, and letting them go on again."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.utils import timezone

from agents.events.append import append_events
from agents.models import POOL, ApprovalRequest, Run, RunClock, Thread, ToolCall
from agents.models.database_clock import DatabaseNow
from agents.services.errors import Conflict, NotAllowed
from agents.services.wake import enqueue_run, lock_run
from agents.states import (
    ACTIVE_RUNS,
    OPEN_CALLS,
    RUN_TRANSITIONS,
    ApprovalStatus,
    RunStatus,
    ToolCallStatus,
    WaitReason,
    check_transition,
)


@transaction.atomic
def cancel_run(run_id: str, *, by: str, reason: str = "") -> Run:
    """End a run and its descendants, or, where a driver holds one, tell the driver to end it.

    What nobody drives ends in this transaction, with its approvals. A run that a worker drives
    ends within a second. A run that has ended stays as it is; cancelling twice is no error.
    """
    run = lock_run(run_id)
    for member in [run, *_locked_descendants(run)]:
        if member.has_ended:
            continue
        if member.status == RunStatus.RUNNING and _is_driven(member):
            RunClock.objects.filter(run=member).update(
                cancel_requested=True, cancel_reason=(reason or f"cancelled by {by}")[:200]
            )
        else:
            end_cancelled(member, by=by, reason=reason)
    run.refresh_from_db()
    return run


OPERATE = "agents.change_run"


def may_cancel(person: AbstractBaseUser | AnonymousUser, run: Run) -> bool:
    """Whether `person` may end `run`, as its owner or a superuser."""
    is_superuser = bool(getattr(person, "is_superuser", False))
    return person.is_authenticated and (run.owner_id == person.pk or is_superuser)


def cancel_for(
    person: AbstractBaseUser, run: Run, *, reason: str = "", operate: bool = False
) -> Run:
    """`cancel_run` by a person, who must be allowed to. Raises `NotAllowed`.

    `operate` is for the operator's door, where the permission to operate runs is enough. The door
    has found `run` among those that the person may see.
    """
    if not (operate and person.has_perm(OPERATE)) and not may_cancel(person, run):  # type: ignore[attr-defined]
        raise NotAllowed("Only its owner may cancel a run.")
    return cancel_run(run.pk, by=person.get_username(), reason=reason)


def _is_driven(run: Run) -> bool:
    """Whether a driver may still write. One whose lease has run out never may again."""
    return RunClock.objects.filter(run=run, lease_until__gt=DatabaseNow()).exists()


def _locked_descendants(run: Run) -> list[Run]:
    """All descendants, ancestors before descendants, by id: the order that all lockers keep."""
    found: list[Run] = []
    level = [run.pk]
    while level:
        children = list(
            Run.objects.select_for_update(no_key=True).filter(parent__in=level).order_by("pk")
        )
        found += children
        level = [child.pk for child in children]
    return found


def end_cancelled(run: Run, *, by: str, reason: str = "") -> None:
    """Close a locked run's open calls and approvals and end it as cancelled."""
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.CANCELLED)
    close_open_work(run)
    run.status = RunStatus.CANCELLED
    run.wait_reason = WaitReason.NONE
    run.ended_at = timezone.now()
    run.save(update_fields=["status", "wait_reason", "ended_at"])
    # A driver that was lost has left its lease behind.
    RunClock.objects.filter(run=run).update(lease_until=None, lease_holder="")
    append_events(run.id, [("run.cancelled", {"by": by, "reason": reason})])
    start_next_pending(run)


def close_open_work(run: Run) -> None:
    """End what a run leaves open: calls that never ran are cancelled, requests withdrawn."""
    ToolCall.objects.filter(run=run, status__in=OPEN_CALLS).update(
        status=ToolCallStatus.CANCELLED, is_error=True, code="cancelled", finished_at=timezone.now()
    )
    ApprovalRequest.objects.filter(run=run, status=ApprovalStatus.PENDING).update(
        status=ApprovalStatus.CANCELLED
    )


def start_next_pending(run: Run) -> None:
    """When a root run has ended, the next message of its thread takes its turn."""
    if run.parent_id is not None:
        return
    # A message that arrives now has the thread locked and still sees this run: it is waited for.
    Thread.objects.select_for_update(no_key=True).get(pk=run.thread_id)
    siblings = Run.objects.filter(thread=run.thread_id, parent=None)
    if siblings.filter(status__in=ACTIVE_RUNS).exists():
        return  # what has ended was itself a message that waited
    following = (
        siblings.select_for_update(no_key=True)
        .filter(status=RunStatus.PENDING)
        .order_by("number")
        .first()
    )
    if following is not None:
        check_transition(RUN_TRANSITIONS, following.status, RunStatus.QUEUED)
        following.status = RunStatus.QUEUED
        following.save(update_fields=["status"])
        enqueue_run(following)


@transaction.atomic
def resume_run(run_id: str, *, executor: str = POOL) -> Run:
    """Let a failed run go on where it stopped, or hand an orphan of a dead process to others.

    Raises `Conflict` for a run that waits for a person, has been answered or was cancelled.
    """
    run = lock_run(run_id)
    if run.status == RunStatus.FAILED:
        # A message that arrives now has the thread locked: it is waited for.
        Thread.objects.select_for_update(no_key=True).get(pk=run.thread_id)
        active = Run.objects.filter(thread=run.thread_id, parent=None, status__in=ACTIVE_RUNS)
        if active.exclude(pk=run.pk).exists():
            raise Conflict("The thread is busy with another run: resume this one afterwards.")
        later = Run.objects.filter(thread=run.thread_id, parent=None, number__gt=run.number)
        if later.exists():
            raise Conflict("The thread went on after this run: send a new message instead.")
        run.status = RunStatus.QUEUED
        run.error_code = run.error_message = run.finish_reason = ""
        run.ended_at = None
        # Whoever cancelled it meant what it did before it failed.
        RunClock.objects.filter(run=run).update(cancel_requested=False, cancel_reason="")
        append_events(run.id, [("run.resumed", {"reason": "resumed by a person"})])
    elif run.status == RunStatus.RUNNING and _is_driven(run):
        raise Conflict("The run is being driven: it needs no resuming.", code="driven")
    elif run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
        hint = "decide its approvals" if run.status == RunStatus.WAITING else "start a new run"
        raise Conflict(f"The run is {run.status}: {hint}.")
    run.executor = executor
    run.save()
    RunClock.objects.filter(run=run).update(lost_drivers=0)
    enqueue_run(run)
    return run
