"""The page of the console."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from agents.doors.admin.numbers import span
from agents.doors.web.navigation import NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.features.operator_console.charts import charts_of, series_of, time_text
from agents.features.operator_console.console import Console, console_of, may_view
from agents.features.operator_console.numbers import ALL, PERIODS, By, Numbers
from agents.selectors.visible import VIEW_ALL

NAVIGATION = [
    NavigationEntry(
        "web:console",
        _("Console"),
        order=550,
        key="o",
        help=_("console: cost, failures and waits of all users"),
        permission=VIEW_ALL,
    )
]
GROUPS: dict[str, By] = {"agent": "agent", "model": "model", "user": "user", "tool": "tool"}
MOST_GROUPS = 50


@page
@require_safe
def console(request: PersonRequest) -> HttpResponse:
    """Show the last `?days=` (7, 30 or 90) by `?by=` agent, model, user or tool."""
    if not may_view(request.user):
        raise PermissionDenied
    requested = request.GET.get("days", "")
    days = int(requested) if requested in map(str, PERIODS) else 30
    by = GROUPS.get(request.GET.get("by", ""), "agent")
    found = console_of(request.user, days, by)
    return render(request, "vel_operator_console/console.html", _context(found, days, by))


def _context(found: Console, days: int, by: By) -> dict[str, Any]:
    now = timezone.now()
    period = found.period
    oldest = found.work.oldest_seconds
    return {
        "console": found,
        "days": days,
        "by": by,
        "periods": PERIODS,
        "choices": list(GROUPS),
        "series": series_of(period),
        "charts": charts_of(period),
        "groups": [
            (name, numbers, _wait(numbers))
            for name, numbers in period.groups
            if by != "tool" or name != ALL
        ][:MOST_GROUPS],
        "total_wait": _wait(period.total),
        "oldest_task": "" if oldest is None else time_text(oldest),
        "waiting_runs": [(each, span(now - each.since)) for each in found.waiting_runs],
        "stuck_runs": [(each, span(now - each.since)) for each in found.stuck_runs],
        "requests": [(each, span(now - each.created_at)) for each in found.waiting_requests],
    }


def _wait(numbers: Numbers) -> str:
    mean = numbers.mean_approval_seconds
    return "–" if mean is None else time_text(mean)


urlpatterns = [path("console/", console, name="console")]
