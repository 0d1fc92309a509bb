"""Failed runs by error code, and runs and requests that wait or are stuck."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import (
    Case,
    CharField,
    Count,
    DateTimeField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.features.operator_console.numbers import readable_requests, runs_since
from agents.models import ApprovalRequest, Run, RunEvent
from agents.models.database_clock import DatabaseNow
from agents.selectors.visible import Person, runs_for
from agents.states import ACTIVE_RUNS, ApprovalStatus, RunStatus

SHOWN = 10
QUIET = timedelta(minutes=15)
"""A running run without an event for this time may be stuck."""
LATE_SECONDS = 60.0
"""A worker claims a queued or due run much faster."""

CAUSES = {
    "driver_lost": _("Its worker is gone, and no other worker has taken it over"),
    "driver_died": _("Its workers died repeatedly"),
    "not_taken": _("No worker has taken it from the queue"),
    "overdue": _("It is due to continue, and no worker has taken it"),
    "quiet": _("It runs without an event for more than 15 minutes"),
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed runs with one error code. `newest` is the one that was created last."""

    code: str
    runs: int
    newest: Run


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that has not ended. `since` is the time of its last event.

    `cause` is a key of `CAUSES` if the run is stuck, otherwise "".
    """

    run: Run
    since: datetime
    cause: str = ""

    @property
    def cause_text(self) -> str:
        return str(CAUSES.get(self.cause, ""))


def failures(person: Person, first: date, zone: ZoneInfo) -> list[Failure]:
    """Return the most frequent error codes of failed runs since the day `first`, at most 10."""
    failed = Q(status=RunStatus.FAILED, parent=None)
    # A condition of the sums, because SQLite would read all failed runs by the index of statuses.
    rows = list(
        runs_since(person, first, zone)
        .values_list("error_code")
        .annotate(failed=Count("id", filter=failed), newest=Max("id", filter=failed))
        .filter(failed__gt=0)
        .order_by("-failed", "error_code")[:SHOWN]
    )
    runs = _with_names(runs_for(person)).in_bulk([newest for _, _, newest in rows])
    return [Failure(code, count, runs[key]) for code, count, key in rows if key in runs]


def longest_waiting_runs(person: Person) -> list[OpenRun]:
    """Return the 10 parked or queued runs with the oldest last event, the oldest first."""
    waiting = (RunStatus.PENDING, RunStatus.QUEUED, RunStatus.WAITING)
    runs = _open_runs(person).filter(status__in=waiting).order_by("since", "pk")[:SHOWN]
    return [OpenRun(run, run.since) for run in runs]


def longest_waiting_requests(person: Person) -> list[ApprovalRequest]:
    """Return the 10 oldest pending requests, without private ones of other people.

    The caller has checked that `person` may read all runs.
    """
    pending = readable_requests(person).filter(status=ApprovalStatus.PENDING)
    shown = pending.select_related("run__agent_version__agent", "run__owner")
    return list(shown.defer("input", "edited_input", "preview").order_by("id")[:SHOWN])


def stuck_runs(person: Person) -> list[OpenRun]:
    """Return open runs that make no progress although they do not wait for people, at most 10."""
    now = timezone.now()
    late = now - timedelta(seconds=LATE_SECONDS)
    lost = Q(clock__lease_until__lt=DatabaseNow() - 5.0) | Q(clock__lease_until=None)
    cause = Case(
        When(lost, status=RunStatus.RUNNING, then=Value("driver_lost")),
        When(clock__lost_drivers__gt=0, then=Value("driver_died")),
        When(status=RunStatus.QUEUED, since__lt=late, then=Value("not_taken")),
        When(
            status=RunStatus.WAITING,
            wake_at__lt=DatabaseNow() - LATE_SECONDS,
            then=Value("overdue"),
        ),
        When(status=RunStatus.RUNNING, since__lt=now - QUIET, then=Value("quiet")),
        default=Value(""),
        output_field=CharField(),
    )
    runs = _open_runs(person).filter(status__in=ACTIVE_RUNS).annotate(cause=cause)
    found = runs.exclude(cause="").order_by("since", "pk")[:SHOWN]
    return [OpenRun(run, run.since, run.cause) for run in found]


def _open_runs(person: Person) -> QuerySet[Any]:
    """Return the runs that `person` can read, with `since`, the time of the last event."""
    last = RunEvent.objects.filter(run=OuterRef("pk"), seq=OuterRef("clock__seq"))
    since = Coalesce(
        Subquery(last.values("created_at")[:1]), "created_at", output_field=DateTimeField()
    )
    return _with_names(runs_for(person)).annotate(since=since)


def _with_names(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.select_related("agent_version__agent", "owner")
