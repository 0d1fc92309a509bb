"""Giving runs to the workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.db import transaction
from django_q.tasks import async_task

from agents.events.append import append_events
from agents.events.catalogue.runs import RunResumed
from agents.kernel import row_hooks
from agents.models import POOL, Run
from agents.models.database_clock import DatabaseNow
from agents.services.placement import queue_for
from agents.states import RUN_TRANSITIONS, RunStatus, WaitReason, check_transition

DRIVE_TASK = "agents.tasks.drive_run"


_here: dict[str, Callable[[str], None]] = {}


def drive_here(executor: str, submit: Callable[[str], None] | None) -> None:
    """Give runs of `executor` to `submit` when they are ready; None ends that."""
    if submit is None:
        _here.pop(executor, None)
    else:
        _here[executor] = submit


def enqueue_run(run: Run) -> None:
    """Request a driver, in the transaction that made the run ready.

    This is only a hint, which avoids the wait for the sweeper: a task for the workers, or a call in
    the only process that may drive the run, if that is this one.
    """
    if run.executor == POOL:
        async_task(DRIVE_TASK, run.id, **queue_for(run))
    elif (submit := _here.get(run.executor)) is not None:
        transaction.on_commit(partial(submit, run.id))


def wake_run(run: Run, reason: str) -> None:
    """Queue a parked run. The caller holds the lock of the run's row."""
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.QUEUED)
    run.status = RunStatus.QUEUED
    run.wait_reason = WaitReason.NONE
    run.wake_at = None
    run.save(update_fields=["status", "wait_reason", "wake_at"])
    append_events(run.id, [RunResumed(reason=reason)])
    enqueue_run(run)


def lock_run(run_id: str) -> Run:
    """Return the run's row, locked until the transaction ends.

    NO KEY: on PostgreSQL the driver's inserts take a key-share lock on the row that they refer to.
    They must not wait for a person's decision, or cause a deadlock with it.
    """
    return Run.objects.select_for_update(no_key=True).get(pk=run_id)


def lock_with_parent(run_id: str, parent_id: str | None) -> Run | None:
    """Lock the rows of the parent and the run, in this order. Return the run, or None if gone."""
    rows = Run.objects.select_for_update(no_key=True)
    if parent_id is not None:
        rows.filter(pk=parent_id).first()
    return rows.filter(pk=run_id).first()


def wake_due() -> bool:
    """Wake one parked run that is due. Return False if no run is due.

    Only one in a transaction: two may belong to one family, which is locked from its root.
    """
    due = Run.objects.filter(wake_at__lte=DatabaseNow(), status=RunStatus.WAITING)
    run_id = due.order_by("wake_at").values_list("pk", flat=True).first()
    if run_id is None:
        return False
    run = due.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is not None:  # else another process was faster
        wake_run(run, row_hooks.time_over(run) or "the time is over")
    return True
