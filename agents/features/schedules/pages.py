"""A person's schedules: a list, and a page for each with its times and their results."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from agents.disk_space import is_short, shortage
from agents.doors.web.navigation import MENU, NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.run_panels import RunPanel
from agents.features.schedules.actions import (
    delete_schedule,
    enable_schedule,
    save_schedule,
)
from agents.features.schedules.firing import fire_now
from agents.features.schedules.models import Overlap, Schedule
from agents.features.schedules.queries import schedules_for
from agents.features.schedules.times import LONGEST, SHORTEST
from agents.hidden_text import visible
from agents.models import MessageRole, ThreadPolicy
from agents.selectors.attention import own_runs
from agents.selectors.visible import agents_for
from agents.services.errors import InvalidRequest, ServiceError
from agents.services.runs.trigger_rights import MESSAGE_CHARACTERS, find_agent
from agents.services.tokens import NAME_CHARACTERS

SHOWN_FIRINGS = 30
EACH_MORNING = "0 8 * * mon-fri"
"""The times that the form suggests for a run."""
RUN_PANELS = [RunPanel(template="vel_schedules/run_panel.html")]


@page
@require_http_methods(["GET", "HEAD", "POST"])
def schedules(request: PersonRequest) -> HttpResponse:
    """List the schedules with a form for a new one. A POST creates it.

    `?run=` fills in the agent and the message of one of the user's runs.
    """
    if request.method != "POST":
        return render(request, "vel_schedules/schedules.html", _list(request))
    try:
        result = save_schedule(_typed(request, Schedule(owner_id=request.user.pk)), by=request.user)
    except ServiceError as error:
        context = {**_list(request), "problem": error.message, "typed": request.POST}
        return render(request, "vel_schedules/schedules.html", context, status=error.http_status)
    text = gettext("%(name)s is scheduled.") % {"name": result.name}
    messages.success(request, visible(text))
    return redirect("web:schedule", schedule_id=result.pk)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def schedule(request: PersonRequest, schedule_id: str) -> HttpResponse:
    """Show a schedule. A POST has `action`: save (with the form), run, pause, go_on or delete."""
    rows = schedules_for(request.user).select_related("agent", "owner", "thread")
    found = rows.filter(pk=schedule_id).first()
    if found is None:
        raise Http404
    if request.method != "POST":
        return render(request, "vel_schedules/schedule.html", _one(request, found))
    try:
        return _act(request, found)
    except ServiceError as error:
        found = rows.get(pk=schedule_id)
        context = {**_one(request, found), "problem": error.message}
        if request.POST.get("action") == "save":
            context["typed"] = request.POST
        return render(request, "vel_schedules/schedule.html", context, status=error.http_status)


def _act(request: PersonRequest, found: Schedule) -> HttpResponse:
    user = request.user
    match request.POST.get("action"):
        case "save":
            save_schedule(_typed(request, found), by=user)
            messages.success(request, gettext("Saved."))
        case "run":
            return redirect("web:run", run_id=fire_now(found.pk, by=user).pk)
        case "pause":
            enable_schedule(found.pk, False, by=user)
            messages.success(request, gettext("Paused."))
        case "go_on":
            enable_schedule(found.pk, True, by=user)
            messages.success(request, gettext("Resumed."))
        case "delete":
            delete_schedule(found.pk, by=user)
            text = gettext("%(name)s was deleted; its runs stay.") % {"name": found.name}
            messages.success(request, visible(text))
            return redirect("web:schedules")
        case _:
            raise InvalidRequest(gettext("Submit the form with one of its buttons."))
    return redirect("web:schedule", schedule_id=found.pk)


def _typed(request: PersonRequest, into: Schedule) -> Schedule:
    form = {name: request.POST.get(name, "").strip() for name in request.POST}
    into.name = form.get("name", "")
    into.agent = find_agent(form.get("agent", ""), request.user)
    into.message = request.POST.get("message", "").replace("\r\n", "\n")
    into.cron = form.get("cron", "")
    minutes = _minutes(form.get("every_minutes", ""))
    # The form shows whole minutes, so seconds that were set through the REST API stay.
    if minutes is None or minutes != _shown_minutes(into):
        into.interval_seconds = None if minutes is None else minutes * 60
    into.time_zone = form.get("time_zone", "")
    into.thread_policy = form.get("thread_policy", "")
    into.overlap = form.get("overlap", "")
    into.ends_at = _moment(form.get("ends_at", ""))
    return into


def _minutes(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 9):
        raise InvalidRequest(gettext("Write the minutes as a whole number."))
    return int(text)


def _shown_minutes(schedule: Schedule) -> int | None:
    return schedule.interval_seconds // 60 if schedule.interval_seconds else None


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise InvalidRequest(gettext("Write the end as a date and a time."))
    try:
        return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except OverflowError:
        raise InvalidRequest(gettext("Write the end as a date and a time.")) from None


def _list(request: PersonRequest) -> dict[str, Any]:
    rows = schedules_for(request.user).select_related("agent")
    given = {"time_zone": settings.TIME_ZONE, **_of_run(request)}
    return {"schedules": rows, **_form(request), "given": given}


def _of_run(request: PersonRequest) -> dict[str, str]:
    """Return the fields that repeat the run `?run=`, or none without such a run of the user."""
    run = own_runs(request.user).filter(pk=request.GET.get("run", "").replace("\0", "")).first()
    if run is None:
        return {}
    first = run.messages.filter(turn=0, role=MessageRole.USER).first()
    return {
        "run": run.pk,
        "name": run.thread.title[:NAME_CHARACTERS],
        "agent": run.thread.agent.slug,
        "message": first.text if first else "",
        "cron": EACH_MORNING,
    }


def _one(request: PersonRequest, found: Schedule) -> dict[str, Any]:
    firings = list(found.firings.select_related("run")[:SHOWN_FIRINGS])
    minutes = _shown_minutes(found) or ""
    return {
        "schedule": found,
        "firings": firings,
        "short_of_space": shortage() if found.due_at and is_short() else "",
        **_form(request),
        "given": {
            "name": found.name,
            "agent": found.agent.slug,
            "message": found.message,
            "cron": found.cron,
            "every_minutes": str(minutes),
            "time_zone": found.time_zone,
            "thread_policy": found.thread_policy,
            "overlap": found.overlap,
            "ends_at": found.ends_at.strftime("%Y-%m-%dT%H:%M") if found.ends_at else "",
        },
    }


def _form(request: PersonRequest) -> dict[str, Any]:
    return {
        "agents": agents_for(request.user).order_by("name").values_list("slug", "name"),
        "thread_policies": ThreadPolicy.choices,
        "overlaps": Overlap.choices,
        "name_characters": NAME_CHARACTERS,
        "message_characters": MESSAGE_CHARACTERS,
        "least_minutes": SHORTEST // 60,
        "most_minutes": LONGEST // 60,
    }


urlpatterns = [
    path("schedules/", schedules, name="schedules"),
    path("schedules/<slug:schedule_id>/", schedule, name="schedule"),
]

NAVIGATION = [NavigationEntry("web:schedules", _("Schedules"), place=MENU, order=300)]
