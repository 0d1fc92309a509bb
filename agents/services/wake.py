"""Handing a run to the workers."""

from __future__ import annotations

from django_q.tasks import async_task

from agents.events.append import append_events
from agents.models import POOL, Run
from agents.states import RUN_TRANSITIONS, RunStatus, WaitReason, check_transition

DRIVE_TASK = "agents.tasks.drive_run"


def enqueue_run(run: Run) -> None:
    """Ask the workers for a driver, in the transaction that made the run ready.

    The task is only a hint that saves waiting for the sweeper. A run that belongs to one process
    is picked up by that process.
    """
    if run.executor == POOL:
        async_task(DRIVE_TASK, run.id)


def wake_run(run: Run, reason: str) -> None:
    """Let a parked run go on. The caller holds the lock of the run's row."""
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.QUEUED)
    run.status = RunStatus.QUEUED
    run.wait_reason = WaitReason.NONE
    run.save(update_fields=["status", "wait_reason"])
    append_events(run.id, [("run.resumed", {"reason": reason})])
    enqueue_run(run)


def lock_run(run_id: str) -> Run:
    """The run's row, locked until the transaction ends.

    NO KEY: on PostgreSQL the driver's inserts take a key-share lock on the row they refer to,
    and must not wait for, or deadlock with, a person's decision.
    """
    return Run.objects.select_for_update(no_key=True).get(pk=run_id)
