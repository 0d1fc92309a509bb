"""The numbers of the console, by day and group.

Each query reads the rows of the period by an index, and aggregates them in the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from django.db.models import (
    CharField,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.fields.json import KeyTextTransform
from django.utils import timezone

from agents.ids import first_id_at
from agents.models import ApprovalRequest, Run, ToolCall
from agents.selectors.dashboard import day_of, midnight
from agents.selectors.usage import USERNAME, DayUsage, usage_by_day
from agents.selectors.visible import Person, runs_for, unless_private
from agents.states import ApprovalStatus, RunStatus, ToolCallStatus

By = Literal["agent", "model", "user", "tool"]
PERIODS = (7, 30, 90)
"""Periods in days."""
ALL = ""
"""The group of numbers that cannot be attributed to a tool."""
_CLOCK_DIFFERENCE = timedelta(hours=1)
"""Ids contain the time of the process, so rows near the start of the period are checked twice."""
_FAILED_CALL = Q(is_error=True) | Q(status__in=(ToolCallStatus.FAILED, ToolCallStatus.INTERRUPTED))


@dataclass(slots=True)
class Numbers:
    """Sums that can be added. Times are in seconds.

    `worker_seconds`, tool calls, requests and model calls include those of subagents; `runs`,
    `failed_runs`, `started_runs` and `queue_seconds` do not. `microusd` is the sum of the known
    prices. The cost is complete if `unpriced`, which counts groups of calls without a price, is 0.
    """

    model_calls: int = 0
    unpriced: int = 0
    tokens: int = 0
    microusd: int = 0
    runs: int = 0
    failed_runs: int = 0
    started_runs: int = 0
    queue_seconds: float = 0.0
    worker_seconds: float = 0.0
    tool_calls: int = 0
    failed_tool_calls: int = 0
    tool_seconds: float = 0.0
    decided_requests: int = 0
    approval_seconds: float = 0.0

    def add(self, other: Numbers) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    @property
    def dollars(self) -> float:
        return self.microusd / 1_000_000

    @property
    def mean_queue_seconds(self) -> float | None:
        """The mean time from the request of a run to its start; None without a started run."""
        return self.queue_seconds / self.started_runs if self.started_runs else None

    @property
    def mean_approval_seconds(self) -> float | None:
        """The mean time from an approval request to its decision; None without a decision."""
        return self.approval_seconds / self.decided_requests if self.decided_requests else None


@dataclass(frozen=True, slots=True)
class Spender:
    """A user or an agent with its usage."""

    name: str
    numbers: Numbers


@dataclass(frozen=True, slots=True)
class Period:
    """The numbers of a period. `days` contains every day, earliest first.

    `cells` are the numbers by day and group, without empty ones. `groups` are (name, sum of its
    days), highest cost first. `top_users` and `top_agents` have only numbers of model calls.
    """

    by: By
    days: list[date]
    cells: dict[tuple[date, str], Numbers]
    groups: list[tuple[str, Numbers]]
    total: Numbers
    top_users: list[Spender]
    top_agents: list[Spender]


def numbers_of(person: Person, days: int, by: By, zone: ZoneInfo) -> Period:
    """Return the numbers of the last `days` days of the time zone, with four queries.

    Runs, tool calls and requests count on the day on which they were created or started. Tool calls
    of runs that were created before the period are missing.
    """
    today = timezone.now().astimezone(zone).date()
    listed = [today - timedelta(days=ago) for ago in reversed(range(days))]
    usage = usage_by_day(person, days, zone)
    cells: dict[tuple[date, str], Numbers] = {}

    def cell(day: date, group: str | None) -> Numbers:
        return cells.setdefault((day, group or ALL), Numbers())

    for row in usage:
        cell(row.day, _group_of(row, by)).add(_used(row))
    for day, group, numbers in (
        *_runs(person, listed, by, zone),
        *_tool_calls(person, listed, by, zone),
        *_requests(person, listed, by, zone),
    ):
        cell(day, group).add(numbers)
    sums: dict[str, Numbers] = {}
    total = Numbers()
    for (_, group), numbers in cells.items():
        sums.setdefault(group, Numbers()).add(numbers)
        total.add(numbers)
    groups = sorted(sums.items(), key=lambda item: (*_rank(item[1]), item[0]))
    return Period(
        by, listed, cells, groups, total, _spenders(usage, "user"), _spenders(usage, "agent")
    )


def _rank(numbers: Numbers) -> tuple[int, ...]:
    return (-numbers.microusd, -numbers.tokens, -numbers.runs, -numbers.tool_calls)


def _group_of(row: DayUsage, by: By) -> str:
    return {"agent": row.agent, "model": row.model, "user": row.user, "tool": ALL}[by]


def _used(row: DayUsage) -> Numbers:
    return Numbers(
        model_calls=row.calls,
        unpriced=row.microusd is None,
        tokens=row.tokens,
        microusd=row.microusd or 0,
    )


def _spenders(usage: Iterable[DayUsage], by: By, most: int = 10) -> list[Spender]:
    sums: dict[str, Numbers] = {}
    for row in usage:
        sums.setdefault(_group_of(row, by), Numbers()).add(_used(row))
    found = sorted(sums.items(), key=lambda item: (*_rank(item[1]), item[0]))
    return [Spender(name, numbers) for name, numbers in found[:most]]


def runs_since(person: Person, first: date, zone: ZoneInfo) -> QuerySet[Run]:
    """Return the runs that `person` can read and that were created on the day `first` or later.

    Ids start with the time, so the query uses the index of the primary key: there is no index of
    the creation times of all users' runs.
    """
    start = midnight(first, zone)
    oldest = first_id_at(start - _CLOCK_DIFFERENCE)
    return runs_for(person).filter(pk__gte=oldest, created_at__gte=start)


Rows = list[tuple[date, str | None, Numbers]]


def _runs(person: Person, days: list[date], by: By, zone: ZoneInfo) -> Rows:
    root = Q(parent=None)
    rows = (
        runs_since(person, days[0], zone)
        .annotate(day=day_of("created_at", days, zone), group=_run_key(by))
        .values_list("day", "group")
        .annotate(
            runs=Count("id", filter=root),
            failed=Count("id", filter=root & Q(status=RunStatus.FAILED)),
            started=Count("started_at", filter=root),
            queue=Sum(_length("created_at", "started_at"), filter=root),
            worked=Sum("clock__active_ms"),
        )
        .order_by()
    )
    return [
        (
            day,
            group,
            Numbers(
                runs=runs,
                failed_runs=failed,
                started_runs=started,
                queue_seconds=_seconds(queue),
                worker_seconds=(worked or 0) / 1_000,
            ),
        )
        for day, group, runs, failed, started, queue, worked in rows
    ]


def _tool_calls(person: Person, days: list[date], by: By, zone: ZoneInfo) -> Rows:
    start = midnight(days[0], zone)
    calls = ToolCall.objects.filter(run__in=runs_since(person, days[0], zone))
    rows = (
        calls.filter(started_at__gte=start)
        .annotate(day=day_of("started_at", days, zone), group=_key(by))
        .values_list("day", "group")
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=_FAILED_CALL),
            time=Sum(_length("started_at", "finished_at")),
        )
        .order_by()
    )
    return [
        (
            day,
            group,
            Numbers(tool_calls=calls, failed_tool_calls=failed, tool_seconds=_seconds(time)),
        )
        for day, group, calls, failed, time in rows
    ]


def _requests(person: Person, days: list[date], by: By, zone: ZoneInfo) -> Rows:
    start = midnight(days[0], zone)
    rows = (
        readable_requests(person)
        .filter(
            status=ApprovalStatus.DECIDED,
            id__gte=first_id_at(start - _CLOCK_DIFFERENCE),
            created_at__gte=start,
            decided_at__isnull=False,
        )
        .annotate(day=day_of("created_at", days, zone), group=_key(by))
        .values_list("day", "group")
        .annotate(decided=Count("id"), waited=Sum(_length("created_at", "decided_at")))
        .order_by()
    )
    return [
        (day, group, Numbers(decided_requests=decided, approval_seconds=_seconds(waited)))
        for day, group, decided, waited in rows
    ]


def readable_requests(person: Person) -> QuerySet[ApprovalRequest]:
    """Return the approval requests of all users' runs, without private ones of other people.

    The caller has checked that `person` may read all runs.
    """
    # The conditions of `runs_for`, as a join: the requests decide which runs are read.
    requests = ApprovalRequest.objects.filter(unless_private(person), run__is_copy=False)
    return requests.filter(run__is_erased=False)


def _run_key(by: By, prefix: str = "") -> Any:
    if by == "agent":
        return F(f"{prefix}agent_version__agent__slug")
    if by == "user":
        return F(f"{prefix}owner__{USERNAME}")
    if by == "model":
        return KeyTextTransform("model", f"{prefix}agent_version__spec")
    return Value(ALL, output_field=CharField())


def _key(by: By) -> Any:
    return F("tool") if by == "tool" else _run_key(by, "run__")


def _length(start: str, end: str) -> ExpressionWrapper:
    return ExpressionWrapper(F(end) - F(start), output_field=DurationField())


def _seconds(length: timedelta | None) -> float:
    return length.total_seconds() if length is not None else 0.0
