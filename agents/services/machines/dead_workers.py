"""End the leases of dead workers, and their cancelled runs.

Only two kinds of processes do this, because they know that a worker and its threads are dead: a new
worker, and the supervisor of `vel up`. Both first inherit a lease, then kill the sandboxes of its
run, and only then settle the run (invariant 1: no sandbox of a driver outlives its lease).
"""

from __future__ import annotations

import sys
from collections.abc import Collection

from django.db import connection, transaction
from django.db.models import Q

from agents.ids import run_marker
from agents.models import Run, RunClock
from agents.models.database_clock import now_sql
from agents.services.runs.control import end_driven_cancelled
from agents.services.runs.wake import lock_with_parent
from agents.settings import WorkerSettings
from agents.states import RunStatus
from sandbox.reaper import kill_marked

FINDS_SANDBOXES = sys.platform == "linux"
"""Without /proc Vel cannot find the sandboxes of dead workers: their leases expire."""
_CLOCK = RunClock._meta.db_table


def settle_dead(dead: Collection[str], holder: str) -> int:
    """Settle the runs of dead workers in this thread. Return how many leases were ended.

    This is for a process without an engine; see `agents.engine.process.sweeper` for the other case.

    Args:
        dead: Names of dead workers and of dead clusters.
        holder: The name under which this process inherits leases.

    Raises:
        DatabaseError: The database failed. The inherited leases expire; another process may inherit
            the others.
        SandboxError: A sandbox cannot be killed. The leases expire.
    """
    if not FINDS_SANDBOXES:
        return 0
    mine = [
        (run_id, fence)
        for run_id, fence, old_holder in leases_of(dead)
        if inherit_lease(run_id, fence, old_holder, holder)
    ]
    kill_marked([run_marker(run_id) for run_id, _ in mine])
    for run_id, fence in mine:
        with transaction.atomic():
            settle_inherited(run_id, fence, holder)
    return len(mine)


def leases_of(dead: Collection[str]) -> list[tuple[str, int, str]]:
    """Return the leases of dead workers and clusters: run, fence, holder."""
    if not dead:
        return []
    of_dead = Q()
    for name in dead:
        of_dead |= Q(lease_holder__endswith=f":{name}") | Q(lease_holder__contains=f":{name}-")
    held = RunClock.objects.filter(of_dead, run__status=RunStatus.RUNNING).order_by("run_id")
    return list(held.values_list("run_id", "fence", "lease_holder"))


def inherit_lease(run_id: str, fence: int, dead: str, holder: str) -> bool:
    """Take the lease of a dead process, so that only `holder` kills its sandboxes.

    Returns False if another process was faster. The fence stays, because `holder` drives nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{_CLOCK}" SET lease_holder = %s, lease_until = {now_sql()} + %s'  # noqa: S608
            " WHERE run_id = %s AND fence = %s AND lease_holder = %s",
            [holder, WorkerSettings.now().LEASE_SECONDS, run_id, fence, dead],
        )
        return bool(cursor.rowcount)


def settle_inherited(run_id: str, fence: int, holder: str) -> None:
    """End a run that was cancelled, or let any process claim it.

    Call this in a transaction, when the run's sandboxes are dead. A later cancel finds no lease
    and ends the run itself.
    """
    parent_id = Run.objects.filter(pk=run_id).values_list("parent_id", flat=True).first()
    run = lock_with_parent(run_id, parent_id)
    inherited = RunClock.objects.filter(run_id=run_id, fence=fence, lease_holder=holder)
    cancelled = inherited.filter(cancel_requested=True, run__status=RunStatus.RUNNING)
    if run is not None and cancelled.update(lease_until=None, lease_holder=""):
        end_driven_cancelled(run)
    else:
        end_lease(run_id, fence, holder)


def end_lease(run_id: str, fence: int, holder: str) -> None:
    """End a lease that `holder` has inherited: any process may claim the run now."""
    with connection.cursor() as cursor:
        cursor.execute(
            # Earlier than now, even if the clock of the database counts milliseconds.
            f'UPDATE "{_CLOCK}" SET lease_until = {now_sql()} - 1'  # noqa: S608
            " WHERE run_id = %s AND fence = %s AND lease_holder = %s",
            [run_id, fence, holder],
        )
