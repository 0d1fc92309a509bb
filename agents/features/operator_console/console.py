"""The content of the console, for the page and the API."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import PermissionsMixin

from agents.features.operator_console.numbers import By, Period, numbers_of
from agents.features.operator_console.problems import (
    Failure,
    OpenRun,
    failures,
    longest_waiting_requests,
    longest_waiting_runs,
    stuck_runs,
)
from agents.models import ApprovalRequest, ProcessKind
from agents.selectors.dashboard import WorkState, work_state
from agents.selectors.metrics import seen_processes
from agents.selectors.usage import zone_of
from agents.selectors.visible import VIEW_ALL, Person


@dataclass(frozen=True, slots=True)
class Workers:
    """The worker processes that are alive, and the runs that they can drive in parallel."""

    processes: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Console:
    """All that the console shows. Days are those of `zone`."""

    zone: ZoneInfo
    period: Period
    failures: list[Failure]
    waiting_runs: list[OpenRun]
    waiting_requests: list[ApprovalRequest]
    stuck_runs: list[OpenRun]
    work: WorkState
    workers: Workers


def may_view(person: Person) -> bool:
    return isinstance(person, PermissionsMixin) and person.has_perm(VIEW_ALL)


def console_of(person: Person, days: int, by: By) -> Console:
    """Return the console. The caller checks `may_view`."""
    zone = zone_of(settings.TIME_ZONE)
    period = numbers_of(person, days, by, zone)
    alive = [
        process.row
        for process in seen_processes()
        if process.is_alive and process.row.kind == ProcessKind.WORKER
    ]
    return Console(
        zone=zone,
        period=period,
        failures=failures(person, period.days[0], zone),
        waiting_runs=longest_waiting_runs(person),
        waiting_requests=longest_waiting_requests(person),
        stuck_runs=stuck_runs(person),
        work=work_state(),
        workers=Workers(len(alive), sum(row.capacity for row in alive)),
    )
