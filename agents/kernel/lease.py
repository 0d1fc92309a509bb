"""Check and release the lease of a worker, which gives it the right to write to a run.

Invariant 1, lease and fence: each write of a worker checks the fencing token in the same
transaction.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.kernel import row_hooks
from agents.models import Run, RunClock
from agents.models.database_clock import now_sql
from agents.services.runs.wake import lock_with_parent

_CLOCK = RunClock._meta.db_table


class FenceLost(Exception):
    """This worker no longer has the lease of the run. The transaction must be rolled back."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The right to write to a run, which a worker received with its claim."""

    run_id: str
    thread_id: str
    fence: int
    parent_id: str | None = None


def held_clock(writer: Writer) -> RunClock:
    """Check the fencing token, and return the run's clock with a row lock. Raises `FenceLost`."""
    clocks = RunClock.objects.raw(
        f'UPDATE "{_CLOCK}" SET seq = seq'  # noqa: S608
        f" WHERE run_id = %s AND fence = %s AND lease_until > {now_sql()} RETURNING *",
        [writer.run_id, writer.fence],
    )
    for clock in clocks:
        return clock
    raise FenceLost(writer.run_id)


def release_lease(run_id: str, fence: int, active_ms: int = 0) -> bool:
    """Clear the lease in the transaction that releases, parks or ends the run.

    Args:
        fence: The fencing token of the worker's claim.
        active_ms: Milliseconds that the worker has worked since its last report.

    Returns:
        False if the worker no longer has the lease.
    """
    clocks = RunClock.objects.raw(
        f'UPDATE "{_CLOCK}" SET lease_until = NULL, lease_holder = %s,'  # noqa: S608
        f" active_ms = active_ms + %s"
        f" WHERE run_id = %s AND fence = %s AND lease_until > {now_sql()} RETURNING *",
        ["", active_ms, run_id, fence],
    )
    for clock in clocks:
        row_hooks.released(run_id, clock)
        return True
    return False


def lock_and_release(writer: Writer) -> Run:
    """Lock the run, clear its lease, and return the run. Starts the last transaction of a worker.

    The row of a parent is locked first, because the end of a run can resume its parent. Raises
    `FenceLost` if the worker no longer has the lease, or if the run was deleted.
    """
    run = lock_with_parent(writer.run_id, writer.parent_id)
    if run is None or not release_lease(writer.run_id, writer.fence):
        raise FenceLost(writer.run_id)
    return run
