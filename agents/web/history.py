"""All runs of a person."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.models import Run
from agents.selectors.visible import Person, runs_for
from agents.states import RunStatus
from agents.web.pages import PersonRequest, page

RUNS_A_PAGE = 30


def own_runs(person: Person) -> QuerySet[Run]:
    """Runs that `person` started, newest first, with what a line about each shows."""
    return (
        runs_for(person)
        .filter(owner=person.pk, parent=None)
        .select_related("thread__agent")
        .order_by("-created_at", "-pk")
    )


@page
@require_safe
def history(request: PersonRequest) -> HttpResponse:
    """`?status=` keeps the runs in one status, `?page=` turns the pages."""
    runs = own_runs(request.user)
    status = request.GET.get("status", "")
    if status in RunStatus.values:
        runs = runs.filter(status=status)
    else:
        status = ""
    context = {
        "page": Paginator(runs, RUNS_A_PAGE).get_page(request.GET.get("page")),
        "status": status,
        "statuses": RunStatus.choices,
    }
    return render(request, "web/history.html", context)
