"""Current values for metrics and the status page of the whole installation.

No query reads ended runs, so the cost does not grow with the history.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.models import Count, F, Min, Q, QuerySet
from django.utils import timezone
from django_q.models import OrmQ

from agents.kernel.features import collect
from agents.models import (
    POOL,
    ApprovalRequest,
    ProcessKind,
    Run,
    RunClock,
    ServerProcess,
)
from agents.models.database_clock import DatabaseNow
from agents.states import ApprovalStatus, RunStatus
from agents.telemetry.counters import Gauge, Values, added

ALIVE_SECONDS = 35.0
"""A process seen within this time is alive: three heartbeats and a slow one."""
_OPEN = (RunStatus.PENDING, RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING)


@dataclass(frozen=True, slots=True)
class SeenProcess:
    """A row of `ServerProcess`, with its age in seconds."""

    row: ServerProcess
    seconds_ago: float

    @property
    def is_alive(self) -> bool:
        return self.seconds_ago <= ALIVE_SECONDS


def seen_processes() -> list[SeenProcess]:
    rows = ServerProcess.objects.exclude(pk=ServerProcess.RETIRED)
    found = rows.annotate(ago=DatabaseNow() - F("seen_at"))
    return [SeenProcess(row, max(0.0, row.ago)) for row in found]


def counted() -> Values:
    """Return the counters of all processes, including ended ones."""
    total: Values = {}
    for text in ServerProcess.objects.exclude(counters="").values_list("counters", flat=True):
        total = added(total, json.loads(text))
    return total


def runs_by_status() -> dict[tuple[str, ...], float]:
    """Return the numbers of open runs by (status, wait reason)."""
    rows = (
        Run.objects.filter(status__in=_OPEN)
        .values_list("status", "wait_reason")
        .annotate(number=Count("id"))
        .order_by()
    )
    found: dict[tuple[str, ...], float] = {(status, ""): 0.0 for status in map(str, _OPEN)}
    for status, reason, number in rows:
        key = (status, reason if status == RunStatus.WAITING else "")
        found[key] = found.get(key, 0.0) + number
    return found


@dataclass(frozen=True, slots=True)
class Leases:
    """The numbers of held leases by holder, and of runs whose driver is gone (`lost`)."""

    held: dict[str, int]
    lost: int


def leases() -> Leases:
    clocks = RunClock.objects.filter(run__status=RunStatus.RUNNING)
    rows = (
        clocks.filter(lease_until__gt=DatabaseNow())
        .values_list("lease_holder")
        .annotate(number=Count("run_id"))
        .order_by("lease_holder")
    )
    # A short time after expiry is normal: the sweeper runs each second.
    lost = clocks.filter(
        Q(lease_until__lt=DatabaseNow() - 5.0) | Q(lease_until=None), run__executor=POOL
    )
    return Leases(dict(rows), lost.count())


def gauges() -> Iterator[Gauge]:
    """Yield the gauges, those of features (`metrics.GAUGES`) included. Queries the database."""
    yield Gauge(
        "vel_runs", "Runs that have not ended.", runs_by_status(), ("status", "wait_reason")
    )
    held = leases()
    yield Gauge("vel_leases_held", "Runs that are driven now.", {(): sum(held.held.values())})
    yield Gauge("vel_leases_lost", "Runs whose driver is gone.", {(): held.lost})
    yield from _queue()
    yield from _wake_ups()
    yield from _approvals()
    for _, feature_gauges in collect("metrics", "GAUGES"):
        yield from feature_gauges()
    yield from _processes()
    size = database_bytes()
    if size is not None:
        yield Gauge("vel_database_bytes", "Size of the database.", {(): size})


def due_tasks(now: datetime) -> QuerySet[OrmQ]:
    """Return the due tasks that no worker has, of the common queue and those of single hosts."""
    name = settings.Q_CLUSTER["name"]
    # The lock of a task that a worker holds is in the future.
    return OrmQ.objects.filter(Q(key=name) | Q(key__startswith=f"{name}@"), lock__lte=now)


def _queue() -> Iterator[Gauge]:
    now = timezone.now()
    found = due_tasks(now).aggregate(tasks=Count("id"), oldest=Min("lock"))
    age = (now - found["oldest"]).total_seconds() if found["oldest"] else 0.0
    yield Gauge(
        "vel_queue_tasks", "Tasks that are due and that no worker has.", {(): found["tasks"]}
    )
    yield Gauge(
        "vel_queue_oldest_seconds", "How long the oldest of them has been due.", {(): max(0.0, age)}
    )


def _wake_ups() -> Iterator[Gauge]:
    due = Run.objects.filter(wake_at__lte=DatabaseNow(), status=RunStatus.WAITING)
    oldest = due.aggregate(oldest=Min("wake_at"))["oldest"]
    age = 0.0 if oldest is None else max(0.0, time.time() - oldest)
    yield Gauge(
        "vel_wake_up_oldest_seconds",
        "The time for which the oldest due parked run has waited.",
        {(): age},
    )


def _approvals() -> Iterator[Gauge]:
    pending = ApprovalRequest.objects.filter(status=ApprovalStatus.PENDING)
    kinds = dict(pending.values_list("kind").annotate(number=Count("id")).order_by())
    oldest = pending.aggregate(oldest=Min("created_at"))["oldest"]
    age = (timezone.now() - oldest).total_seconds() if oldest is not None else 0.0
    yield Gauge(
        "vel_approvals_pending",
        "Requests that wait for a person.",
        {(kind,): number for kind, number in kinds.items()},
        ("kind",),
    )
    yield Gauge(
        "vel_approvals_oldest_seconds",
        "How long the oldest of them has waited.",
        {(): max(0.0, age)},
    )


def _processes() -> Iterator[Gauge]:
    alive = [each.row for each in seen_processes() if each.is_alive]
    workers = [row for row in alive if row.kind == ProcessKind.WORKER]
    yield Gauge(
        "vel_workers_alive", "Worker processes that say that they live.", {(): len(workers)}
    )
    yield Gauge(
        "vel_worker_capacity",
        "Runs that they can drive in parallel.",
        {(): sum(row.capacity for row in workers)},
    )
    yield Gauge(
        "vel_web_streams_open",
        "Event streams and sockets that are open.",
        {(): sum(row.streams for row in alive)},
    )


def database_bytes() -> int | None:
    """Return the size of the whole database in bytes. None if it is unknown."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        elif connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
        else:
            return None
        row = cursor.fetchone()
    return int(row[0]) if row is not None else None
