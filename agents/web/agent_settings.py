"""The page Settings of an agent: its owner changes the definition, and others see who may change
it.

A change is an import of the agent's file: the same checks, one new version, or nothing.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.hidden_text import escaped_text, unescaped_text, visible
from agents.middleware.registry import known_tool_names
from agents.models import Agent
from agents.providers.registry import PROVIDERS
from agents.selectors.visible import agents_for
from agents.services.agent_definitions.files import (
    ImportPlan,
    carry_out_import,
    plan_import,
    present_definition,
    with_fields,
)
from agents.services.agent_definitions.rights import may_change_definition, may_read_definition
from agents.services.errors import Conflict, InvalidRequest, ServiceError

TEXTS = ("name", "description", "system_prompt", "provider", "model")
"""The fields that the page has a form for. The file has all."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def agent_settings(request: PersonRequest, slug: str) -> HttpResponse:
    """Show the settings. A POST has `action` save (the fields), preview or store (the file).

    `base` identifies the definition that the person has seen: if it has changed, nothing is stored.
    """
    agent = _agent(request, slug)
    if request.method != "POST":
        return render(request, "web/agent_settings.html", _context(request, agent))
    try:
        match request.POST.get("action"):
            case "save":
                return _store(request, agent, with_fields(agent, _typed(request)))
            case "preview":
                plan = plan_import(
                    _file(request), by=request.user, known_tools=known_tool_names(), of=agent
                )
                return _show_again(request, agent, plan=plan)
            case "store":
                return _store(request, agent, _file(request))
        raise InvalidRequest("Press one of the buttons.")
    except ServiceError as error:
        return _show_again(request, agent, error=error)


def _agent(request: PersonRequest, slug: str) -> Agent:
    """Return the agent. The owner can also open one that is turned off. Raises `Http404`."""
    agent = Agent.objects.filter(slug=slug).first()
    if agent is not None and (
        may_read_definition(request.user, agent)
        or agents_for(request.user).filter(pk=agent.pk).exists()
    ):
        return agent
    raise Http404("There is no such agent that you may use.")


def _store(request: PersonRequest, agent: Agent, text: str) -> HttpResponse:
    stored, plan = carry_out_import(
        text,
        by=request.user,
        known_tools=known_tool_names(),
        base=request.POST.get("base", ""),
        of=agent,
    )
    if plan.changes_something:
        messages.success(request, f"Saved as version {stored.version}, for new runs.")
    else:
        messages.success(request, "Nothing has changed.")
    return redirect("web:agent-settings", slug=agent.slug)


def _typed(request: PersonRequest) -> dict[str, str]:
    """Return the fields of the form. Browsers send line breaks as CR LF."""
    missing = [name for name in TEXTS if name not in request.POST]
    if missing:
        raise InvalidRequest("The form is not complete: open the page again.")
    return {name: unescaped_text(_lines(request.POST[name])) for name in TEXTS}


def _file(request: PersonRequest) -> str:
    return _lines(request.POST.get("file", ""))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _show_again(
    request: PersonRequest,
    agent: Agent,
    *,
    plan: ImportPlan | None = None,
    error: ServiceError | None = None,
) -> HttpResponse:
    """Show the page with the typed values, and the changes or the problem."""
    context = _context(request, agent)
    if request.POST.get("action") == "save":
        context["fields"] |= {
            name: _lines(request.POST[name]) for name in TEXTS if name in request.POST
        }
    elif context["may_change"]:
        context["file"] = _lines(request.POST.get("file", ""))
        context["file_is_open"] = True
    if plan is not None:
        context["plan"] = plan
        context["lines"] = [(line[:1], visible(line)) for line in plan.diff[2:]]
    if error is not None:
        context["problem"] = error.message
        if isinstance(error, Conflict):
            # The next attempt also uses the version that was seen, not the current one.
            context["is_stale"] = True
            context["base"] = request.POST.get("base", "")
    status = error.http_status if error is not None else 200
    return render(request, "web/agent_settings.html", context, status=status)


def _context(request: PersonRequest, agent: Agent) -> dict[str, Any]:
    text, base = present_definition(agent)
    fields = {name: escaped_text(getattr(agent, name)) for name in TEXTS}
    return {
        "agent": agent,
        "may_use": agents_for(request.user).filter(pk=agent.pk).exists(),
        "may_change": may_change_definition(request.user, agent),
        "may_read": may_read_definition(request.user, agent),
        "fields": fields,
        "has_hidden": any(value != getattr(agent, name) for name, value in fields.items()),
        "providers": sorted({*PROVIDERS, *([agent.provider] if agent.provider else [])}),
        "file": text,
        "base": base,
    }
