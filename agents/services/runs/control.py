"""Ending runs before their answer, and resuming them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.utils import timezone

from agents.events.append import append_events
from agents.events.catalogue.runs import RunCancelled, RunResumed
from agents.kernel import row_hooks
from agents.models import NEVER_STARTED, POOL, Run, RunClock, Thread, ToolCall
from agents.models.database_clock import DatabaseNow
from agents.services.audit import record
from agents.services.disk_reserve import require_room
from agents.services.errors import Conflict, NotAllowed
from agents.services.runs.delegation import report_unfinished_children
from agents.services.runs.wake import enqueue_run, lock_run, lock_with_parent
from agents.states import (
    ACTIVE_RUNS,
    OPEN_CALLS,
    RUN_TRANSITIONS,
    RunStatus,
    ToolCallStatus,
    WaitReason,
    check_transition,
)
from agents.toolkits import bound


@transaction.atomic
def cancel_run(run_id: str, *, by: str, reason: str = "") -> Run:
    """End a run and its descendants, or let their driver end them.

    Runs without a driver end in this transaction, with their approvals. A run that a worker drives
    ends within a second. A run that has ended stays unchanged; cancelling twice is no error. `by`
    names the person or the cause, and `reason` is a text for people.
    """
    parent_id = Run.objects.values_list("parent_id", flat=True).get(pk=run_id)
    run = lock_with_parent(run_id, parent_id)
    if run is None:
        raise Run.DoesNotExist
    _end_all([run, *locked_descendants(run)], by, reason, wake=run.pk)
    run.refresh_from_db()
    return run


def end_children(run: Run, *, by: str = "its parent", reason: str = "") -> None:
    """Cancel all descendants of a locked run that ends, the lowest first. This wakes no parent."""
    members = locked_descendants(run)
    driven = _end_all(members, by, reason)
    report_unfinished_children(run, [child for child in driven if child.parent_id == run.pk])


def _end_all(members: list[Run], by: str, reason: str, *, wake: str = "") -> list[Run]:
    """End the locked runs without a driver. Return the others: their drivers will end them.

    `wake`: the run whose parent continues, if it waited for that run.
    """
    reason = (reason or f"cancelled by {by}")[:200]
    going = [member for member in members if not member.has_ended]
    driven = _driven_among(going)
    # These clocks first: an end may lock rows of features, and drivers lock those after their
    # clocks.
    clocks = RunClock.objects.filter(run__in=driven)
    clocks.update(cancel_requested=True, cancel_reason=reason)
    left = [member for member in going if member.pk in driven]
    for member in reversed(going):
        if member.pk not in driven:
            below = [child for child in left if child.parent_id == member.pk]
            report_unfinished_children(member, below)
            RunClock.objects.filter(run=member).update(cancel_reason=reason)
            end_cancelled(member, by=by, reason=reason, wake=member.pk == wake)
    return left


OPERATE = "agents.change_run"


def may_cancel(person: AbstractBaseUser | AnonymousUser, run: Run) -> bool:
    """Return whether `person` may end `run`, as its owner or a superuser."""
    is_superuser = bool(getattr(person, "is_superuser", False))
    return person.is_authenticated and (run.owner_id == person.pk or is_superuser)


def cancel_for(
    person: AbstractBaseUser, run: Run, *, reason: str = "", operate: bool = False
) -> Run:
    """Cancel a run for a person, after a check of their rights. Raises `NotAllowed`.

    `operate` is for the operator's door, which needs only the permission to operate runs. The door
    has checked that the person may see `run`.
    """
    if not (operate and person.has_perm(OPERATE)) and not may_cancel(person, run):  # type: ignore[attr-defined]
        raise NotAllowed("Only its owner may cancel a run.")
    with transaction.atomic():
        cancelled = cancel_run(run.pk, by=person.get_username(), reason=reason)
        if not run.has_ended:  # as the door saw it: an ended run is left unchanged
            record("run.cancelled", run, name=run.pk, by=person, note=reason)
    return cancelled


def is_driven(run: Run) -> bool:
    """Return whether a driver may still write to the run: it has a lease that has not expired."""
    return run.pk in _driven_among([run])


def _driven_among(runs: Sequence[Run]) -> set[str]:
    running = [run.pk for run in runs if run.status == RunStatus.RUNNING]
    held = RunClock.objects.filter(run__in=running, lease_until__gt=DatabaseNow())
    return set(held.values_list("run_id", flat=True)) if running else set()


def locked_descendants(run: Run) -> list[Run]:
    """Lock and return all descendants of a run, level by level, and sorted by id in each level.

    All processes lock in this order.
    """
    found: list[Run] = []
    level = [run.pk]
    while level:
        children = list(
            Run.objects.select_for_update(no_key=True).filter(parent__in=level).order_by("pk")
        )
        found += children
        level = [child.pk for child in children]
    return found


def end_cancelled(run: Run, *, by: str, reason: str = "", wake: bool = True) -> None:
    """Close a run's open calls and approvals, and end it as cancelled.

    No model receives the message of a run that still waited for its thread. The caller has locked
    the run and its parent. With `wake`, the parent continues if it waited for this run.
    """
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.CANCELLED)
    waited_for_its_thread = run.status == RunStatus.PENDING
    run.message_refused = run.message_refused or waited_for_its_thread
    row_hooks.stop_waiting(run)
    clock = RunClock.objects.select_for_update(no_key=True).get(run=run)
    row_hooks.released(run.pk, clock)
    close_open_work(run)
    run.status = RunStatus.CANCELLED
    run.wait_reason = WaitReason.NONE
    run.wake_at = None
    run.ended_at = timezone.now()
    run.save(update_fields=["status", "wait_reason", "wake_at", "ended_at", "message_refused"])
    # A lost driver has left its lease.
    RunClock.objects.filter(run=run).update(lease_until=None, lease_holder="")
    append_events(run.id, [RunCancelled(by=by, reason=reason)])
    row_hooks.ended(run, wake=wake)
    # The end of the active run starts the next message. It locks the thread before the waiting
    # runs, so the end of a waiting run must not lock the thread.
    if not waited_for_its_thread:
        start_next_pending(run)


def end_joined(run: Run, other: str, *, by: str) -> None:
    """End a waiting run whose message has become part of the run `other` of its thread.

    The caller has locked `run`. Later histories contain the message only once, in `other`.
    """
    reason = f"its message was added to the run {other}"
    RunClock.objects.filter(run=run).update(cancel_reason=reason)
    end_cancelled(run, by=by, reason=reason)


def end_driven_cancelled(run: Run) -> None:
    """End a locked run with a cancel request as cancelled. Its driver has released the lease."""
    reason = RunClock.objects.values_list("cancel_reason", flat=True).get(run_id=run.pk)
    end_children(run)
    end_cancelled(run, by="request", reason=reason)


def close_open_work(run: Run) -> None:
    """Cancel the calls that a run leaves open."""
    ToolCall.objects.filter(run=run, status__in=OPEN_CALLS).update(
        status=ToolCallStatus.CANCELLED, is_error=True, code="cancelled", finished_at=timezone.now()
    )


def start_next_pending(run: Run) -> None:
    """Queue the next waiting message of the thread after the end of `run`.

    Does nothing for a subagent's run, and while another run of the thread is active.
    """
    if run.parent_id is not None:
        return
    # A new message has the thread locked and still sees this run: wait for it.
    Thread.objects.select_for_update(no_key=True).get(pk=run.thread_id)
    siblings = Run.objects.filter(thread=run.thread_id, parent=None)
    open_runs = siblings.filter(status__in=(*ACTIVE_RUNS, RunStatus.PENDING))
    statuses = set(open_runs.values_list("status", flat=True).distinct().order_by())
    if statuses != {RunStatus.PENDING}:
        return
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
    """Continue a failed run from its last state, or queue a run again whose process died.

    `executor` executes it and its open subagents: the workers (`POOL`), or a process by its name.

    Raises:
        Conflict: The run is in progress, waits, is completed or was cancelled; it belongs to a
            subagent; its message was blocked; its thread is busy or has newer runs; or it needs the
            Python program that started it.
        NoSpace: The run has failed, and the disk is full.
    """
    run = lock_run(run_id)
    must_have_tools(run)
    had_ended = run.status == RunStatus.FAILED
    below = [member for member in locked_descendants(run) if not member.has_ended]
    if run.parent_id is not None:
        raise Conflict(
            "A subagent's run cannot be resumed. Resume the run that started it.",
            code="subagent",
        )
    if had_ended and run.message_refused:
        raise Conflict(
            "The message of this run was blocked before the model received it. Send another "
            "message.",
            code="message_blocked",
        )
    if had_ended:
        require_room()
        # A new message has the thread locked: wait for it.
        Thread.objects.select_for_update(no_key=True).get(pk=run.thread_id)
        active = Run.objects.filter(thread=run.thread_id, parent=None, status__in=ACTIVE_RUNS)
        if active.exclude(pk=run.pk).exists():
            raise Conflict("The thread is busy with another run: resume this one afterwards.")
        later = Run.objects.filter(thread=run.thread_id, parent=None, number__gt=run.number)
        if later.exclude(NEVER_STARTED).exists():
            raise Conflict("The thread has newer runs than this one. Send a new message instead.")
        run.status = RunStatus.QUEUED
        run.error_code = run.error_message = run.finish_reason = ""
        run.ended_at = None
        # An old cancel request was about the time before the failure.
        RunClock.objects.filter(run=run).update(cancel_requested=False, cancel_reason="")
        append_events(run.id, [RunResumed(reason="resumed by a person")])
    elif run.status == RunStatus.RUNNING and is_driven(run):
        raise Conflict("The run is in progress, so it cannot be resumed.", code="driven")
    elif run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
        raise Conflict(f"The run is {run.status}: {_instead(run)}.")
    run.executor = executor
    row_hooks.resumed(run, had_ended=had_ended)
    run.save()
    RunClock.objects.filter(run=run).update(lost_drivers=0)
    Run.objects.filter(pk__in=[member.pk for member in below]).update(executor=executor)
    for member in (run, *below):
        member.executor = executor
        if member.status in (RunStatus.QUEUED, RunStatus.RUNNING):
            enqueue_run(member)
    record("run.resumed", run, name=run.pk)
    return run


def _instead(run: Run) -> str:
    """Return the advice for a run that cannot be resumed."""
    if run.status != RunStatus.WAITING:
        return "start a new run"
    if run.wait_reason == WaitReason.CHILDREN:
        return "it continues when its subagents have ended"
    return "decide its approvals"


@transaction.atomic
def resume_orphaned_family(run_id: str, *, executor: str) -> Run:
    """Assign a run and its subagents to `executor`, and queue those that can continue.

    A run that waits for subagents still waits; for any other this is `resume_run`, with its
    exceptions. Raises `Conflict` with the code `driven` if a process still executes one of the
    subagents.
    """
    run = lock_run(run_id)
    must_have_tools(run)
    waits = (run.status, run.wait_reason) == (RunStatus.WAITING, WaitReason.CHILDREN)
    if run.parent_id is not None or not waits:
        return resume_run(run_id, executor=executor)
    members = [member for member in locked_descendants(run) if not member.has_ended]
    for member in members:
        if member.status == RunStatus.RUNNING and is_driven(member):
            raise Conflict(f"Its subagent {member.pk} is being driven.", code="driven")
    for member in (run, *members):
        member.executor = executor
        member.save(update_fields=["executor"])
        if member.status in (RunStatus.QUEUED, RunStatus.RUNNING):
            RunClock.objects.filter(run=member).update(lost_drivers=0)
            enqueue_run(member)
    record("run.resumed", run, name=run.pk)
    return run


def toolkit_of(run: Run, fingerprint: str) -> Any:
    """Return the toolkit that this process has for the run's thread; None if it has none.

    An empty `fingerprint` means that the run needs none. The result is an
    `agents.middleware.custom.toolkit.Toolkit`.
    """
    return bound(run.thread.root_id or run.thread_id) if fingerprint else None


def must_have_tools(run: Run) -> None:
    """Raise `Conflict` unless this process has the tools and other parts of the run."""
    fingerprint = run.spec.get("toolkit", "")
    if not fingerprint:
        return
    toolkit = toolkit_of(run, fingerprint)
    if toolkit is None:
        raise Conflict(
            "This run uses tools or other code of the Python program that started it. Continue it "
            "in that program with agent.resume(session_id).",
            code="toolkit_missing",
        )
    if not toolkit.has_parts_of(run.spec):
        raise Conflict(
            "This run uses code that the agent of this program does not have. Create the agent "
            "with the same options, then resume.",
            code="toolkit_missing",
        )
