"""The page that sends a waiting message now, and the script with its button."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_POST

from agents.doors.web.pages import PersonRequest, page, wants_json
from agents.doors.web.run_panels import RunPanel
from agents.features.steering.actions import send_now
from agents.selectors.visible import runs_for
from agents.services.errors import ServiceError

_JOINS = gettext_noop("The agent reads it after its current step")
_STOPS = gettext_noop(
    "The work stops after its current step, because this message needs its own run"
)

RUN_PANELS = [RunPanel(script="vel_steering/send_now.js")]


@page
@require_POST
def send_message_now(request: PersonRequest, run_id: str) -> HttpResponse:
    """Send the waiting message `run_id` now, and redirect to the page of the run that answers it.

    With `Accept: application/json`, the response has the problem, or an empty text, as `message`,
    what happens next as `told`, and whether the message joins the run in progress as `joins`.
    """
    runs = runs_for(request.user).filter(owner=request.user.pk, parent=None)
    waiting = get_object_or_404(runs, pk=run_id)
    try:
        run = send_now(waiting, by=request.user)
    except ServiceError as problem:
        if wants_json(request):
            return JsonResponse({"message": problem.message}, status=problem.http_status)
        messages.error(request, problem.message)
        return redirect("web:run", run_id=run_id)
    told = _JOINS if run is not None else _STOPS
    if wants_json(request):
        return JsonResponse({"message": "", "told": gettext(told), "joins": run is not None})
    messages.success(request, gettext(told))
    return redirect("web:run", run_id=run.pk if run is not None else run_id)


urlpatterns = [
    path("runs/<slug:run_id>/send-now/", send_message_now, name="run-send-now"),
]
