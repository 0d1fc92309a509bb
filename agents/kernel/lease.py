"""The end of a driver's lease, and the right to write that goes with it.

Invariant 1, lease and fence: whoever writes for a driver checks the fence in the same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.kernel import row_hooks
from agents.models import Run, RunClock
from agents.models.database_clock import now_sql
from agents.services.wake import lock_with_parent

_CLOCK = RunClock._meta.db_table


class FenceLost(Exception):
    """The run is no longer this driver's. Nothing of the transaction was written."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The right to write to a run, as given by its claim."""

    run_id: str
    thread_id: str
    fence: int
    parent_id: str | None = None


def held_clock(writer: Writer) -> RunClock:
    """Check the fence and return the clock, locked. Raises `FenceLost`."""
    clocks = RunClock.objects.raw(
        f'UPDATE "{_CLOCK}" SET seq = seq'  # noqa: S608
        f" WHERE run_id = %s AND fence = %s AND lease_until > {now_sql()} RETURNING *",
        [writer.run_id, writer.fence],
    )
    for clock in clocks:
        return clock
    raise FenceLost(writer.run_id)


def release_lease(run_id: str, fence: int, active_ms: int = 0) -> bool:
    """Clear the lease in the transaction that parks or ends the run. False: it was lost before.

    `active_ms`: what the driver has worked since it said so last.
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
    """Lock the run and clear its lease: how a driver's last transaction begins.

    The row of a parent is locked before it: that is told of the end. Raises `FenceLost` if the
    run is another's by now, or gone.
    """
    run = lock_with_parent(writer.run_id, writer.parent_id)
    if run is None or not release_lease(writer.run_id, writer.fence):
        raise FenceLost(writer.run_id)
    return run
