"""Queries for the operator's dashboard: runs by day and status, failing agents, worker load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Case, Count, Max, Min, Q, QuerySet, Value, When
from django.utils import timezone
from django_q.models import OrmQ

from agents.models import POOL, Run, RunClock
from agents.models.database_clock import DatabaseNow
from agents.selectors.visible import Person, runs_for
from agents.states import RunStatus

LATE_SECONDS = 20
"""If tasks have been due for longer than this, workers are missing."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Runs without a parent, by status. `by_day` contains every day, earliest first."""

    today: dict[str, int]
    in_all: dict[str, int]
    by_day: list[tuple[date, int, int]]
    """Tuples of day, runs and failed runs."""


@dataclass(frozen=True, slots=True)
class FailingAgent:
    """An agent with failed runs. `last` is the end of the latest one."""

    slug: str
    agent_id: str
    failed: int
    runs: int
    last: datetime | None


@dataclass(frozen=True, slots=True)
class WorkState:
    """The work for workers. `oldest_seconds` is how long the oldest task has been due."""

    tasks: int
    oldest_seconds: int | None
    queued: int
    driven: int
    lost: int
    """Runs whose driver is gone. Another driver will take them over."""

    @property
    def is_late(self) -> bool:
        return self.oldest_seconds is not None and self.oldest_seconds > LATE_SECONDS


def count_runs(person: Person, days: int, zone: ZoneInfo) -> RunCounts:
    """Count runs that `person` can read and that were created in the last `days` days.

    The days are those of the time zone `zone`, and the present one is the last.
    """
    today = timezone.now().astimezone(zone).date()
    dates = [today - timedelta(days=ago) for ago in range(days)]
    rows = (
        _root_runs_in(person, today, days, zone)
        .annotate(day=day_of("created_at", dates, zone))
        .values_list("day", "status")
        .annotate(runs=Count("id"))
        .order_by()
    )
    of_today: Counter[str] = Counter()
    in_all: Counter[str] = Counter()
    by_day: Counter[date] = Counter()
    failed: Counter[date] = Counter()
    for day, status, runs in rows:
        in_all[status] += runs
        by_day[day] += runs
        if day == today:
            of_today[status] += runs
        if status == RunStatus.FAILED:
            failed[day] += runs
    return RunCounts(
        dict(of_today), dict(in_all), [(day, by_day[day], failed[day]) for day in reversed(dates)]
    )


def failing_agents(person: Person, days: int, zone: ZoneInfo, most: int = 8) -> list[FailingAgent]:
    """Return the `most` agents with the most failed runs, among runs that `person` can read.

    These are runs without a parent that were created in the last `days` days of the time zone.
    """
    today = timezone.now().astimezone(zone).date()
    failed = Q(status=RunStatus.FAILED)
    rows = (
        _root_runs_in(person, today, days, zone)
        .values_list("agent_version__agent__slug", "agent_version__agent")
        .annotate(
            failed=Count("id", filter=failed),
            runs=Count("id"),
            last=Max("ended_at", filter=failed),
        )
        .filter(failed__gt=0)
        .order_by("-failed", "agent_version__agent__slug")[:most]
    )
    return [FailingAgent(*row) for row in rows]


def work_state() -> WorkState:
    """Return how much work waits for the workers, and how many runs they drive or have lost.

    The caller checks that the person may see all runs.
    """
    now = timezone.now()
    # The lock of a task that a worker holds is in the future.
    due = OrmQ.objects.filter(key=settings.Q_CLUSTER["name"], lock__lte=now)
    found = due.aggregate(tasks=Count("id"), oldest=Min("lock"))
    oldest = found["oldest"]
    clocks = RunClock.objects.filter(run__executor=POOL, run__status=RunStatus.RUNNING)
    leases = clocks.aggregate(
        driven=Count("run_id", filter=Q(lease_until__gt=DatabaseNow())),
        lost=Count("run_id", filter=Q(lease_until__lt=DatabaseNow() - 5.0)),
    )
    return WorkState(
        tasks=found["tasks"],
        oldest_seconds=None if oldest is None else max(0, int((now - oldest).total_seconds())),
        queued=Run.objects.filter(executor=POOL, status=RunStatus.QUEUED).count(),
        driven=leases["driven"],
        lost=leases["lost"],
    )


def _root_runs_in(person: Person, today: date, days: int, zone: ZoneInfo) -> QuerySet[Run]:
    start = midnight(today - timedelta(days=days - 1), zone)
    return runs_for(person).filter(parent=None, created_at__gte=start)


def day_of(field: str, days: Iterable[date], zone: ZoneInfo) -> Case:
    """Return an expression of the day of `field`, which is one of the consecutive `days`.

    SQLite would call Python for each row to find its date in the zone, so it compares times.
    """
    latest_first = sorted(days, reverse=True)
    return Case(
        *(When(**{f"{field}__gte": midnight(day, zone)}, then=Value(day)) for day in latest_first)
    )


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the start of a day in the time zone."""
    return datetime.combine(day, datetime.min.time(), tzinfo=zone)
