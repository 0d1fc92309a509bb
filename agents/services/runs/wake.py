"""Handing a run to the workers."""

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
    """Give runs of `executor` to `submit` as soon as they are ready; None ends that."""
    if submit is None:
        _here.pop(executor, None)
    else:
        _here[executor] = submit


def enqueue_run(run: Run) -> None:
    """Ask for a driver, in the transaction that made the run ready.

    That is only a hint that saves waiting for the sweeper: a task for the workers, or a word to
    the one process that may drive the run, if that is this one.
    """
    if run.executor == POOL:
        async_task(DRIVE_TASK, run.id, **queue_for(run))
    elif (submit := _here.get(run.executor)) is not None:
        transaction.on_commit(partial(submit, run.id))


def wake_run(run: Run, reason: str) -> None:
    """Let a parked run go on. The caller holds the lock of the run's row."""
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.QUEUED)
    run.status = RunStatus.QUEUED
    run.wait_reason = WaitReason.NONE
    run.wake_at = None
    run.save(update_fields=["status", "wait_reason", "wake_at"])
    append_events(run.id, [RunResumed(reason=reason)])
    enqueue_run(run)


def lock_run(run_id: str) -> Run:
    """The run's row, locked until the transaction ends.

    NO KEY: on PostgreSQL the driver's inserts take a key-share lock on the row they refer to,
    and must not wait for, or deadlock with, a person's decision.
    """
    return Run.objects.select_for_update(no_key=True).get(pk=run_id)


def lock_with_parent(run_id: str, parent_id: str | None) -> Run | None:
    """The rows of a run and, before it, of its parent, locked; the run, or None if it is gone."""
    rows = Run.objects.select_for_update(no_key=True)
    if parent_id is not None:
        rows.filter(pk=parent_id).first()
    return rows.filter(pk=run_id).first()


def wake_due() -> bool:
    """Let one parked run go on whose time has come; False when there is none.

    Only one in a transaction: two may be of one family, and that is locked from above.
    """
    due = Run.objects.filter(wake_at__lte=DatabaseNow(), status=RunStatus.WAITING)
    run_id = due.order_by("wake_at").values_list("pk", flat=True).first()
    if run_id is None:
        return False
    run = due.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is not None:  # else another process was faster
        wake_run(run, row_hooks.time_over(run) or "the time is over")
    return True
