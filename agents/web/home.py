"""The first page: start a run, and find the last ones again."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from agents.ids import new_id
from agents.selectors.visible import agents_for
from agents.services.agents import SCRIPTED, default_provider
from agents.services.demo import DEMO_SLUG
from agents.services.errors import ServiceError
from agents.services.runs import RunRequest, create_run
from agents.web.history import own_runs
from agents.web.pages import PersonRequest, page

RECENT_RUNS = 10


@page
@require_http_methods(["GET", "HEAD", "POST"])
def home(request: PersonRequest) -> HttpResponse:
    """GET shows the form, POST starts a run and goes to its page."""
    if request.method != "POST":
        return show_home(request)
    asked = RunRequest(
        agent=request.POST.get("agent", ""),
        # Browsers send line breaks of a form as CR LF.
        message=request.POST.get("message", "").replace("\r\n", "\n"),
        source="web",
    )
    try:
        made = create_run(
            asked, owner=request.user, idempotency_key=request.POST.get("key") or None
        )
    except ServiceError as error:
        return show_home(request, asked, error.message, status=400)
    return redirect("web:run", run_id=made.run.id)


def show_home(
    request: PersonRequest, asked: RunRequest | None = None, problem: str = "", status: int = 200
) -> HttpResponse:
    """The page, with what was asked and why that was refused."""
    person = request.user
    agents = [
        {
            "slug": agent.slug,
            "name": agent.name,
            "description": agent.description,
            "is_scripted": (agent.provider or default_provider()) == SCRIPTED,
        }
        for agent in agents_for(person)
    ]
    context = {
        "agents": agents,
        "asked": asked,
        "problem": problem,
        "has_demo": any(agent["slug"] == DEMO_SLUG for agent in agents),
        # Sent back with the form: however often it arrives, it starts one run.
        "key": new_id(),
        "runs": own_runs(person)[:RECENT_RUNS],
    }
    return render(request, "web/home.html", context, status=status)
