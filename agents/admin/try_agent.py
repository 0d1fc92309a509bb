"""Test of an agent: a run of the current user in a new thread, with the stored version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext

from agents.doors.admin.journal import person
from agents.doors.admin.strict_pages import STYLES, strict
from agents.hidden_text import visible
from agents.selectors.visible import agents_for
from agents.services.errors import NoSpace, ServiceError
from agents.services.runs.start import RunRequest, create_run

if TYPE_CHECKING:
    from agents.models import Agent, Run


def try_page(page: ModelAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show a form for a message, start the run and redirect to its page."""
    agent = page.get_queryset(request).filter(pk=object_id).first()
    if agent is None:
        raise Http404("There is no such agent.")
    if not page.has_view_permission(request, agent):
        raise PermissionDenied
    user = person(request)
    message, problem = request.POST.get("message", ""), ""
    status = 400 if request.method == "POST" else 200
    may_use = agents_for(user).filter(pk=agent.pk).exists()
    if request.method == "POST":
        try:
            run = create_run(RunRequest(agent.slug, message, source="admin"), owner=user).run
            return HttpResponseRedirect(_page_of(run))
        except ServiceError as error:
            problem = visible(error.message)
            status = 507 if isinstance(error, NoSpace) else 400
    elif not may_use:
        problem = _why_not(agent)
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "media": STYLES,
        "title": gettext("Try %(agent)s") % {"agent": visible(agent.name)},
        "agent": agent,
        "message": message,
        "problem": problem,
        "may_use": may_use,
    }
    request.current_app = page.admin_site.name
    template = "admin/agents/agent/try.html"
    return strict(TemplateResponse(request, template, context, status=status))


def _page_of(run: Run) -> str:
    """Return the URL of the run's page, or of the admin in a project without Vel's pages."""
    try:
        return reverse("web:run", args=[run.pk])
    except NoReverseMatch:
        return reverse("admin:agents_run_change", args=[run.pk])


def _why_not(agent: Agent) -> str:
    if not agent.is_active:
        return gettext("The agent is inactive. Activate it to start runs.")
    return gettext("You cannot start runs with this agent, because it is not shared with you.")
