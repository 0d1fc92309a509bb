"""The page with all runs of a person."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.ids import ID_LENGTH
from agents.kernel.triggers import trigger_kinds
from agents.selectors.excerpts import excerpts_of
from agents.selectors.history import HistoryFilter, agents_of_threads, history_page
from agents.states import RunStatus

LONGEST = 200


@page
@require_safe
def history(request: PersonRequest) -> HttpResponse:
    """List the user's runs.

    Filters: `?status=`, `?agent=` (a slug), `?by=` (the kind of trigger) and `?q=` (words of a
    message). `?after=` (a run id) shows older runs.
    """
    filters = {
        name: request.GET.get(name, "").replace("\0", "")[:LONGEST].strip()
        for name in ("status", "agent", "by", "q")
    }
    if filters["status"] not in RunStatus.values:
        filters["status"] = ""
    of_trigger = gettext("a %(trigger)s")
    starters = {
        "person": gettext("a person"),
        **{kind.source: of_trigger % {"trigger": kind.label} for kind in trigger_kinds()},
    }
    if filters["by"] not in starters:
        filters["by"] = ""
    after = request.GET.get("after", "").replace("\0", "")[:ID_LENGTH]
    wanted = HistoryFilter(filters["q"], filters["status"], filters["agent"], filters["by"])
    found = history_page(request.user, wanted, after)
    kept = {name: value for name, value in filters.items() if value}
    context = {
        "page": found,
        "excerpts": excerpts_of([run.pk for run in found.runs], filters["q"]),
        "given": filters,
        "is_first": not after,
        "first": urlencode(kept),
        "next": urlencode({**kept, "after": found.next_after}) if found.next_after else "",
        "statuses": RunStatus.choices,
        "starters": starters.items(),
        "agents": agents_of_threads(request.user),
    }
    return render(request, "web/history.html", context)
