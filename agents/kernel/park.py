"""Park a run: release it until an event resumes it, in one transaction.

Invariant 3: a parked run holds no worker and no lease. Rows of runs are locked first, ancestors
before descendants, then clocks in the same order, then rows of the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.events.append import EventDraft, append_events
from agents.events.catalogue.runs import RunSuspended
from agents.kernel.lease import FenceLost, Writer, held_clock, release_lease
from agents.models import Run, RunClock
from agents.services.runs.control import end_driven_cancelled
from agents.services.runs.wake import lock_with_parent
from agents.states import RUN_TRANSITIONS, RunStatus, check_transition

Fail = Callable[[Writer, str, str, int], None]
"""Ends the run as failed. Arguments: writer, code, message, milliseconds of work."""


@dataclass(frozen=True, slots=True)
class Locked:
    """The rows that `park` has locked: the run, the runs of `Park.locks` by id, the run's clock."""

    run: Run
    runs: Mapping[str, Run]
    clock: RunClock


@dataclass(frozen=True, slots=True)
class Suspend:
    """The run waits. `data` has fields of `run.suspended`, `drafts` the events before it."""

    data: Mapping[str, Any] = field(default_factory=dict)
    drafts: Sequence[EventDraft] = ()
    wake_at: float | None = None
    """The time when the run continues without a decision, in seconds since 1970 (database clock).
    """


@dataclass(frozen=True, slots=True)
class End:
    """The run fails."""

    code: str
    message: str
    events: Sequence[EventDraft] = ()
    """The events before the end of the run."""
    refuses_message: bool = False
    """Whether no model may receive the run's message, now or in a later run of the thread."""


@dataclass(frozen=True, slots=True)
class Park:
    """A reason to park a run."""

    reason: str
    """The new `Run.wait_reason`."""
    settle: Callable[[Locked], Suspend | End | None]
    """Writes the feature's rows. Returns None if the run need not wait and the worker continues.

    It runs after the locks and the check of the fencing token. It can run again, so it must only
    change rows.
    """
    locks: Sequence[str] | None = None
    """The ids of the ancestors whose events `settle` writes, highest first, and of the run.

    None: the run, and the row of its parent.
    """
    calls: Sequence[Mapping[str, Any]] = ()
    """The calls about which a person must decide: `call_id`, `tool` and `input` of each."""


def park(writer: Writer, parking: Park, active_ms: int, fail: Fail) -> bool:
    """Park the run, or end it. Return False if the run need not wait and the worker continues.

    A run with a cancel request ends as cancelled instead. Call this in a transaction.

    Args:
        writer: The right to write to the run.
        parking: The reason, and the function that writes the rows of the feature.
        active_ms: Milliseconds of work since the worker's last report.
        fail: Called to end the run, if `parking.settle` returns an `End`.

    Raises:
        FenceLost: The worker no longer has the lease, or the run was deleted.
    """
    run, runs = _lock(writer, parking.locks)
    clock = held_clock(writer)
    if clock.cancel_requested:
        # End the run now: a parked run does not check for a request to cancel.
        _release(writer, active_ms)
        end_driven_cancelled(run)
        return True
    found = parking.settle(Locked(run, runs, clock))
    if found is None:
        return False
    if isinstance(found, End):
        append_events(run.pk, found.events)
        fail(writer, found.code, found.message, active_ms)
        return True
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.WAITING)
    run.status = RunStatus.WAITING
    run.wait_reason = parking.reason
    run.wake_at = found.wake_at
    run.save(update_fields=["status", "wait_reason", "wake_at"])
    suspended = RunSuspended(reason=parking.reason, **found.data)
    append_events(run.pk, [*found.drafts, suspended])
    _release(writer, active_ms)
    return True


def _lock(writer: Writer, locks: Sequence[str] | None) -> tuple[Run, dict[str, Run]]:
    if locks is None:
        run = lock_with_parent(writer.run_id, writer.parent_id)
        if run is None:
            raise FenceLost(writer.run_id)
        return run, {run.pk: run}
    rows = Run.objects.select_for_update(no_key=True).filter(pk__in=locks)
    runs = {row.pk: row for row in rows.order_by("depth", "pk")}
    if writer.run_id not in runs:
        raise FenceLost(writer.run_id)
    for run_id in locks:
        if run_id != writer.run_id:
            RunClock.objects.select_for_update(no_key=True).filter(run=run_id).first()
    return runs[writer.run_id], runs


def _release(writer: Writer, active_ms: int) -> None:
    if not release_lease(writer.run_id, writer.fence, active_ms):
        raise FenceLost(writer.run_id)
