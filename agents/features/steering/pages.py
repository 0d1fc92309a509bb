"""The page that sends a waiting message now, and the script with its button."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path
from django.views.decorators.http import require_POST

from agents.doors.web.pages import PersonRequest, page, wants_json
from agents.doors.web.run_panels import RunPanel
from agents.features.steering.actions import send_now
from agents.selectors.visible import runs_for
from agents.services.errors import ServiceError

RUN_PANELS = [RunPanel(script="vel_steering/send_now.js")]


@page
@require_POST
def send_message_now(request: PersonRequest, run_id: str) -> HttpResponse:
    """Send the waiting message `run_id` now, and redirect to its page.

    With `Accept: application/json`, the response has the problem, or an empty text, as `message`.
    """
    runs = runs_for(request.user).filter(owner=request.user.pk, parent=None)
    waiting = get_object_or_404(runs, pk=run_id)
    problem: ServiceError | None = None
    try:
        send_now(waiting, by=request.user)
    except ServiceError as error:
        problem = error
    if wants_json(request):
        text = problem.message if problem else ""
        return JsonResponse({"message": text}, status=problem.http_status if problem else 200)
    if problem:
        messages.error(request, problem.message)
    return redirect("web:run", run_id=run_id)


urlpatterns = [
    path("runs/<slug:run_id>/send-now/", send_message_now, name="run-send-now"),
]
