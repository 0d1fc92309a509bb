"""The home page: items that need attention, a form for a new run, agents and recent runs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from agents.agent_templates.catalogue import agent_templates
from agents.doors.web.pages import PersonRequest, page, wants_json
from agents.doors.web.upload_limit import limited_upload
from agents.hidden_text import visible
from agents.ids import new_id
from agents.middleware.registry import known_tool_names
from agents.models import Message, MessageRole, Run
from agents.providers.stored_keys import refresh_stored_keys
from agents.selectors.attention import attention_for, own_runs
from agents.selectors.visible import agents_for
from agents.services.agent_definitions.actions import SCRIPTED, default_provider
from agents.services.agent_definitions.rights import has_permission
from agents.services.agent_definitions.templates import (
    BUILDER_SLUG,
    create_from_template,
    ensure_builder_agent,
)
from agents.services.demo import DEMO_SLUG, start_demo_run
from agents.services.errors import InvalidRequest, NoSpace, ServiceError
from agents.services.files.uploads import create_run_with, file_problems
from agents.services.runs.start import RunRequest, create_run
from agents.settings import UploadSettings
from agents.web.cards import cards_of
from sandbox.errors import SandboxError

RECENT_RUNS = 10


@limited_upload
@page
@require_http_methods(["GET", "HEAD", "POST"])
def home(request: PersonRequest) -> HttpResponse:
    """Show the form, or start a run with its files on POST and redirect to its page.

    `?agent=` selects an agent. `?again=` fills in the message of one of the user's runs.
    """
    if request.method != "POST":
        return show_home(request, _prefilled(request))
    run_request = RunRequest(
        agent=request.POST.get("agent", ""),
        # Browsers send line breaks in forms as CR LF.
        message=request.POST.get("message", "").replace("\r\n", "\n"),
        source="web",
    )
    try:
        run = _start(request, run_request)
    except ServiceError as error:
        return _refused(request, run_request, error.message, form_status(error))
    except SandboxError as error:
        problem = gettext("The files need a workspace. %(error)s") % {"error": error}
        return _refused(request, run_request, problem, 503)
    if wants_json(request):
        return JsonResponse({"url": reverse("web:run", args=[run.pk]), "is_queued": False})
    return redirect("web:run", run_id=run.id)


def _refused(
    request: PersonRequest, run_request: RunRequest, problem: str, status: int
) -> HttpResponse:
    """Show the form again. A script of the page gets `message`, and `files` with their problems."""
    if wants_json(request):
        files = file_problems(request.FILES.getlist("files"))
        return JsonResponse({"message": problem, "files": files}, status=status)
    return show_home(request, run_request, problem, status=status)


def form_status(error: ServiceError) -> int:
    """Return the HTTP status for a form that could not start a run."""
    return 507 if isinstance(error, NoSpace) else 400


def _prefilled(request: PersonRequest) -> RunRequest | None:
    again = request.GET.get("again", "")
    if not again:
        return RunRequest(agent=request.GET.get("agent", ""), message="", source="web")
    run = own_runs(request.user).filter(pk=again.replace("\0", "")).first()
    if run is None:
        return None
    first_message = Message.objects.filter(run=run, turn=0, role=MessageRole.USER).first()
    message = first_message.text if first_message else ""
    return RunRequest(agent=run.thread.agent.slug, message=message, source="web")


def _start(request: PersonRequest, run_request: RunRequest) -> Run:
    """Create the run. Its files are in place before a worker can claim it."""
    files = request.FILES.getlist("files")
    key = request.POST.get("key") or None
    return create_run_with(run_request, files, owner=request.user, idempotency_key=key).run


def show_home(
    request: PersonRequest,
    run_request: RunRequest | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render the page, with the submitted request and the reason for its refusal, if any."""
    person = request.user
    refresh_stored_keys()  # they can change the default provider
    agents = [
        {
            "slug": agent.slug,
            "name": agent.name,
            "description": agent.description,
            "model": agent.model,
            "is_scripted": (agent.provider or default_provider()) == SCRIPTED,
        }
        for agent in agents_for(person)
    ]
    attention = attention_for(person)
    runs = list(own_runs(person)[:RECENT_RUNS])
    context = {
        "attention": attention,
        "asks": list(
            zip(cards_of(attention.requests, person, opened=False), attention.requests, strict=True)
        ),
        "agents": agents,
        "asked": run_request,
        "agent_selected": (run_request.agent if run_request else "") or _agent_of_last_run(runs),
        "problem": problem,
        "upload_limits": UploadSettings.now(),
        "has_demo": any(agent["slug"] == DEMO_SLUG for agent in agents),
        # An idempotency key: a form that is submitted twice starts one run.
        "key": new_id(),
        "runs": runs,
    }
    return render(request, "web/home.html", context, status=status)


def _agent_of_last_run(runs: list[Run]) -> str:
    """Return the slug of the agent that the user selected last, or "" without recent runs."""
    slugs = (run.thread.agent.slug for run in runs if run.source == "web")
    return next((slug for slug in slugs if slug != BUILDER_SLUG), "")


@page
@require_POST
def start_demo(request: PersonRequest) -> HttpResponse:
    """Start a run of the demo task with its data, in a new thread of the user."""
    try:
        run = start_demo_run(request.user, source="web")
    except ServiceError as error:
        return show_home(request, problem=error.message, status=form_status(error))
    except SandboxError as error:
        problem = gettext("The demo needs a sandbox. %(error)s") % {"error": error}
        return show_home(request, problem=problem, status=503)
    return redirect("web:run", run_id=run.id)


CONVERSATIONS = 5


@page
@require_http_methods(["GET", "HEAD", "POST"])
def new_agent(request: PersonRequest) -> HttpResponse:
    """Show the page. A POST has a `message` for the agent builder, or the form of a template."""
    if request.method != "POST":
        return render(request, "web/new_agent.html", _context(request))
    try:
        match request.POST.get("action"):
            case "template":
                return _from_template(request)
            case "chat":
                return _chat(request)
            case _:
                raise InvalidRequest(gettext("Press one of the buttons."))
    except ServiceError as error:
        context = {**_context(request), "problem": error.message}
        return render(request, "web/new_agent.html", context, status=form_status(error))


def _from_template(request: PersonRequest) -> HttpResponse:
    agent = create_from_template(
        request.POST.get("template", ""),
        name=request.POST.get("name", ""),
        by=request.user,
        known_tools=known_tool_names(),
        ask_before=request.POST.get("ask_before", "").replace(",", " ").split(),
    )
    text = gettext("%(agent)s was created. Give it a first task.") % {"agent": agent.name}
    messages.success(request, visible(text))
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
        "may_ask": has_permission(request.user, "agents.configure_approval"),
        "tools": sorted(known_tool_names()),
        "conversations": with_builder.order_by("-created_at")[:CONVERSATIONS],
        "asked": request.POST.get("message", ""),
        # An idempotency key: a form that is submitted twice starts one run.
        "key": new_id(),
    }
