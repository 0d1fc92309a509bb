"""The page with the usage of a person's own runs, by day and by agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.selectors.usage import UTC_ZONE, DayUsage, usage_by_day
from agents.selectors.visible import agents_for

PERIODS = (7, 30, 90)


@dataclass(frozen=True, slots=True)
class Total:
    """A sum of usage. `dollars` is the sum of known prices; `is_whole` if all prices are known."""

    calls: int
    tokens: int
    dollars: float
    is_whole: bool


@page
@require_safe
def usage(request: PersonRequest) -> HttpResponse:
    """Show the usage of the last `?days=` (7, 30 or 90). Days are in UTC."""
    requested = request.GET.get("days", "")
    days = int(requested) if requested in map(str, PERIODS) else 30
    rows = usage_by_day(request.user, days, UTC_ZONE, own=True)
    names = dict(agents_for(request.user).values_list("slug", "name"))
    context: dict[str, Any] = {
        "days": days,
        "periods": PERIODS,
        "total": total_of(rows),
        "by_day": _by_day(rows, days),
        "by_agent": _by_agent(rows, names),
    }
    return render(request, "web/usage.html", context)


def total_of(rows: Iterable[DayUsage]) -> Total:
    rows = list(rows)
    return Total(
        calls=sum(row.calls for row in rows),
        tokens=sum(row.tokens for row in rows),
        dollars=sum(row.microusd or 0 for row in rows) / 1_000_000,
        is_whole=all(row.microusd is not None for row in rows),
    )


def _by_day(rows: Sequence[DayUsage], days: int) -> list[dict[str, Any]]:
    """Return every day of the period, including days without use, latest first."""
    found: dict[date, list[DayUsage]] = defaultdict(list)
    for row in rows:
        found[row.day].append(row)
    today = timezone.now().astimezone(UTC_ZONE).date()
    listed = [today - timedelta(days=ago) for ago in range(days)]
    totals = [(day, total_of(found.get(day, []))) for day in listed]
    most = max((total.tokens for _, total in totals), default=0) or 1
    return [{"day": day, "total": total, "most": most} for day, total in totals]


def _by_agent(rows: Sequence[DayUsage], names: dict[str, str]) -> list[dict[str, Any]]:
    """Return the agents by usage, highest first. An agent that is not visible has its slug."""
    found: dict[str, list[DayUsage]] = defaultdict(list)
    for row in rows:
        found[row.agent].append(row)
    totals = [
        (names.get(slug, slug), slug in names, slug, total_of(own)) for slug, own in found.items()
    ]
    totals.sort(key=lambda entry: -entry[3].tokens)
    return [
        {"name": name, "is_known": is_known, "slug": slug, "total": total}
        for name, is_known, slug, total in totals
    ]
