"""All runs of a person."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.events.append import dump
from agents.models import Agent, Message, Run
from agents.selectors.attention import own_runs
from agents.selectors.starters import of_starter
from agents.selectors.visible import Person
from agents.states import RunStatus
from agents.web.pages import PersonRequest, page

RUNS_A_PAGE = 30
SHOWN_STARTERS = {"person": "a person", "schedule": "a schedule", "hook": "a webhook"}
LONGEST = 200


@page
@require_safe
def history(request: PersonRequest) -> HttpResponse:
    """`?status=`, `?agent=` (a slug), `?by=` (what started it) and `?q=` (words of a message)
    narrow down, `?page=` turns."""
    everything = own_runs(request.user)
    agents = Agent.objects.filter(threads__runs__in=everything.order_by()).distinct()
    given = {
        name: request.GET.get(name, "").replace("\0", "")[:LONGEST].strip()
        for name in ("status", "agent", "by", "q")
    }
    if given["status"] not in RunStatus.values:
        given["status"] = ""
    if given["by"] not in SHOWN_STARTERS:
        given["by"] = ""
    kept = {name: value for name, value in given.items() if value}
    context = {
        "page": Paginator(_narrowed(everything, given, request.user), RUNS_A_PAGE).get_page(
            request.GET.get("page")
        ),
        "given": given,
        "kept": urlencode(kept),
        "statuses": RunStatus.choices,
        "starters": SHOWN_STARTERS.items(),
        "agents": agents.order_by("name").values_list("slug", "name"),
    }
    return render(request, "web/history.html", context)


def _narrowed(runs: QuerySet[Run], given: dict[str, str], person: Person) -> QuerySet[Run]:
    if given["status"]:
        runs = runs.filter(status=given["status"])
    if given["agent"]:
        runs = runs.filter(thread__agent__slug=given["agent"])
    if given["by"]:
        runs = runs.filter(of_starter(given["by"]))
    if given["q"]:
        # Messages are kept as JSON: what is looked for is spelled as it would be there.
        spelled = dump(given["q"])[1:-1]
        said = Message.objects.filter(run__owner=person.pk, content__icontains=spelled)
        runs = runs.filter(Q(thread__title__icontains=given["q"]) | Q(pk__in=said.values("run")))
    return runs
