"""The page for a new agent, from a template or through a chat with the agent builder."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from agents.agent_templates.catalogue import agent_templates
from agents.doors.web.pages import PersonRequest, page
from agents.hidden_text import visible
from agents.ids import new_id
from agents.middleware.registry import known_tool_names
from agents.selectors.attention import own_runs
from agents.services.agent_definitions.rights import has_permission
from agents.services.agent_definitions.templates import (
    BUILDER_SLUG,
    create_from_template,
    ensure_builder_agent,
)
from agents.services.errors import InvalidRequest, ServiceError
from agents.services.runs.start import RunRequest, create_run
from agents.web.home import form_status

CONVERSATIONS = 5


@page
@require_http_methods(["GET", "HEAD", "POST"])
def new_agent(request: PersonRequest) -> HttpResponse:
    """Show the page. A POST has `template` and `name`, or a `message` for the agent builder."""
    if request.method != "POST":
        return render(request, "web/new_agent.html", _context(request))
    try:
        match request.POST.get("action"):
            case "template":
                return _from_template(request)
            case "chat":
                return _chat(request)
            case _:
                raise InvalidRequest("Press one of the buttons.")
    except ServiceError as error:
        context = {**_context(request), "problem": error.message}
        return render(request, "web/new_agent.html", context, status=form_status(error))


def _from_template(request: PersonRequest) -> HttpResponse:
    agent = create_from_template(
        request.POST.get("template", ""),
        name=request.POST.get("name", ""),
        by=request.user,
        known_tools=known_tool_names(),
    )
    messages.success(request, visible(f"{agent.name} is there: give it a first task."))
    return redirect(f"{reverse('web:home')}?agent={agent.slug}")


def _chat(request: PersonRequest) -> HttpResponse:
    """Start a new thread with the agent builder and redirect to the page of its run."""
    run_request = RunRequest(
        agent=ensure_builder_agent().slug,
        message=request.POST.get("message", "").replace("\r\n", "\n"),
        source="web",
    )
    result = create_run(
        run_request, owner=request.user, idempotency_key=request.POST.get("key") or None
    )
    return redirect("web:run", run_id=result.run.id)


def _context(request: PersonRequest) -> dict[str, Any]:
    with_builder = own_runs(request.user).filter(thread__agent__slug=BUILDER_SLUG)
    return {
        "templates": list(agent_templates().values()),
        "may_create": has_permission(request.user, "agents.add_agent"),
        "conversations": with_builder.order_by("-created_at")[:CONVERSATIONS],
        "asked": request.POST.get("message", ""),
        # An idempotency key: a form that is submitted twice starts one run.
        "key": new_id(),
    }
