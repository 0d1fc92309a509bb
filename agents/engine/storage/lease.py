"""The lease of a driver: claiming a run, renewing the lease, and releasing the run.

Invariant 1: one UPDATE claims a run and raises its fencing token. A lease expires by the database's
clock, so workers need not have the same time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import F
from django.utils import timezone

from agents.engine.storage.journal import Writer
from agents.engine.storage.sql import CLOCK, RUN, THREAD
from agents.events.append import EventDraft, append_events
from agents.events.catalogue.runs import RunResumed, RunStarted
from agents.kernel import row_hooks
from agents.kernel.lease import lock_and_release
from agents.models import Message, MessageRole, Run, RunClock
from agents.models.database_clock import now_sql
from agents.services.placement import Member, take_place
from agents.services.runs.wake import enqueue_run
from agents.settings import MachineSettings, WorkerSettings
from agents.states import RUN_TRANSITIONS, RunStatus, check_transition

MAX_LOST_DRIVERS = 20
"""After this number in a row the run itself probably kills its workers, and is not tried again."""
CLAIMABLE = (RunStatus.QUEUED, RunStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that this driver has claimed. With `recovered`, an earlier driver was lost.

    `asked_at` is a monotonic time of this process, not later than the start of the lease.
    """

    run: Run
    clock: RunClock
    fence: int
    recovered: bool
    asked_at: float


def claim_run(
    run_id: str, executor: str, holder: str, member: Member | None = None
) -> Claim | None:
    """Claim a run, and lock its row. Call this in a transaction.

    Returns None if another driver has the run, if it has ended, waits or was deleted, or if this
    process may not execute it.

    Args:
        run_id: The id of the run.
        executor: The `Run.executor` whose runs this process executes. A cancelled run can be
            claimed by any process, which then ends the run.
        holder: The name of this process, for `RunClock.lease_holder`.
        member: The membership, if this process belongs to one of several machines. It claims only
            runs that its machine may execute.
    """
    run = Run.objects.filter(pk=run_id).first()
    if run is None or not _is_for(executor, run):
        return None
    # Load the agent version with it, which never changes: the first event contains data of it.
    locked = Run.objects.select_for_update(no_key=True, of=("self",))
    run = locked.select_related("agent_version").get(pk=run_id)
    if not _is_for(executor, run):
        return None
    if member is not None and not _is_cancelled(run) and not take_place(run, member):
        return None
    recovered = run.status == RunStatus.RUNNING
    asked_at = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{CLOCK}" SET fence = fence + 1, lease_until = {now_sql()} + %s,'
            " lease_holder = %s, lost_drivers = lost_drivers + %s, noticed = %s"
            f" WHERE run_id = %s AND (lease_until IS NULL OR lease_until < {now_sql()})"
            " RETURNING fence",
            [WorkerSettings.now().LEASE_SECONDS, holder, int(recovered), False, run_id],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    fence = int(row[0])
    drafts: list[EventDraft] = []
    if run.started_at is None:
        run.started_at = timezone.now()
        drafts.append(_started(run, fence))
    elif recovered:
        drafts.append(RunResumed(reason="its worker was lost", attempt=fence))
    if not recovered:
        check_transition(RUN_TRANSITIONS, run.status, RunStatus.RUNNING)
        run.status = RunStatus.RUNNING
    run.save(update_fields=["status", "started_at"])
    append_events(run_id, drafts)
    run = Run.objects.select_related("agent_version", "thread", "clock").get(pk=run_id)
    row_hooks.released(run_id, run.clock)  # a lost driver has not released it
    return Claim(run=run, clock=run.clock, fence=fence, recovered=recovered, asked_at=asked_at)


def last_fault(run: Run) -> str:
    """Return why the run last continued, from its events; "" if it has no such event."""
    event = run.events.filter(type=RunResumed.type).order_by("-seq").first()
    return str(json.loads(event.data)["reason"]) if event is not None else ""


def _is_for(executor: str, run: Run) -> bool:
    """Return whether `executor` may claim the run.

    Every executor may end a cancelled run, because the run's own may not exist any more.
    """
    if run.status not in CLAIMABLE:
        return False
    return run.executor == executor or _is_cancelled(run)


def _is_cancelled(run: Run) -> bool:
    return RunClock.objects.filter(run=run, cancel_requested=True).exists()


def _started(run: Run, attempt: int) -> RunStarted:
    spec = run.spec
    message = Message.objects.filter(run=run, role=MessageRole.USER, turn=0).only("id").first()
    return RunStarted(
        thread_id=run.thread_id,
        message_id=message.pk if message else None,
        agent=spec["slug"],
        provider=spec["provider"],
        model=spec["model"],
        attempt=attempt,
        source=run.source,
        **row_hooks.started(run),
    )


def writer_of(run_id: str, fence: int) -> Writer:
    """Return the right to write with this fencing token. It may already be lost."""
    row = Run.objects.filter(pk=run_id).values_list("thread_id", "parent_id").first()
    thread_id, parent_id = row or ("", None)
    return Writer(run_id, thread_id, fence, parent_id)


def renew_leases(fences: Mapping[str, int]) -> set[str]:
    """Extend the leases of these runs, and return the ids of the runs still held."""
    held: set[str] = set()
    with connection.cursor() as cursor:
        for run_id, fence in fences.items():
            cursor.execute(
                f'UPDATE "{CLOCK}" SET lease_until = {now_sql()} + %s'
                f" WHERE run_id = %s AND fence = %s AND lease_until > {now_sql()}",
                [WorkerSettings.now().LEASE_SECONDS, run_id, fence],
            )
            if cursor.rowcount:
                held.add(run_id)
    return held


def cancelled_among(run_ids: Sequence[str]) -> list[str]:
    """Return the ids of the runs with a cancel request."""
    return list(
        RunClock.objects.filter(run_id__in=run_ids, cancel_requested=True).values_list(
            "run_id", flat=True
        )
    )


def hand_back(writer: Writer, *, fault: str = "") -> None:
    """Release a run before its end, so that another process continues it immediately.

    After a failure, `fault` is its reason: then the release counts like the death of a driver, and
    an event of the run contains the reason. Raises `FenceLost`.
    """
    run = lock_and_release(writer)
    if fault:
        RunClock.objects.filter(run=run).update(lost_drivers=F("lost_drivers") + 1)
        append_events(run.pk, [RunResumed(reason=fault, attempt=writer.fence)])
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.QUEUED)
    run.status = RunStatus.QUEUED
    run.save(update_fields=["status"])
    enqueue_run(run)


def orphaned_runs(executor: str, limit: int, member: Member | None = None) -> list[str]:
    """Return the ids of at most `limit` runs without a driver that this executor may claim.

    `executor` and `member` are those of `claim_run`. Started runs come first, then the oldest: an
    approved run must not wait behind all new ones.
    """
    join, at_home, home = "", "", []
    if member is not None and MachineSettings.now().pins_threads:
        join = (
            f' JOIN "{THREAD}" t ON t.id = r.thread_id LEFT JOIN "{THREAD}" f ON f.id = t.root_id'
        )
        at_home = " AND (COALESCE(f.host, t.host) IN ('', %s) OR c.cancel_requested)"
        home = [member.name]
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT r.id FROM "{RUN}" r JOIN "{CLOCK}" c ON c.run_id = r.id{join}'
            " WHERE r.status IN (%s, %s) AND (r.executor = %s OR c.cancel_requested)"
            f" AND (c.lease_until IS NULL OR c.lease_until < {now_sql()}){at_home}"
            " ORDER BY r.started_at IS NULL, r.created_at LIMIT %s",
            [*CLAIMABLE, executor, *home, limit],
        )
        return [row[0] for row in cursor.fetchall()]
