"""The first page: start a run, and find the last ones again."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from agents.ids import new_id
from agents.models import Run
from agents.selectors.visible import agents_for
from agents.services.agents import SCRIPTED, default_provider
from agents.services.demo import DEMO_SLUG
from agents.services.errors import ServiceError
from agents.services.runs import RunRequest, create_run
from agents.services.uploads import (
    check_uploads,
    distinct_names,
    message_with_uploads,
    store_uploads,
)
from agents.web.history import own_runs
from agents.web.pages import PersonRequest, page
from agents.web.upload_limit import limited_upload
from sandbox.errors import SandboxError

RECENT_RUNS = 10


@limited_upload
@page
@require_http_methods(["GET", "HEAD", "POST"])
def home(request: PersonRequest) -> HttpResponse:
    """GET shows the form, POST starts a run with its files and goes to its page."""
    if request.method != "POST":
        return show_home(request)
    asked = RunRequest(
        agent=request.POST.get("agent", ""),
        # Browsers send line breaks of a form as CR LF.
        message=request.POST.get("message", "").replace("\r\n", "\n"),
        source="web",
    )
    try:
        run = _start(request, asked)
    except ServiceError as error:
        return show_home(request, asked, error.message, status=400)
    except SandboxError as error:
        return show_home(request, asked, f"The files need a workspace. {error}", status=503)
    return redirect("web:run", run_id=run.id)


def _start(request: PersonRequest, asked: RunRequest) -> Run:
    """The run, with its files in place before anybody can claim it."""
    files = request.FILES.getlist("files")
    key = request.POST.get("key") or None
    check_uploads(files)
    if files and asked.message.strip():
        message = message_with_uploads(asked.message, distinct_names(files))
        asked = replace(asked, message=message)
    with transaction.atomic():
        made = create_run(asked, owner=request.user, idempotency_key=key)
        if files and made.created:
            store_uploads(made.run.thread, files)
    return made.run


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
