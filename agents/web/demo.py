"""The button on the home page that starts the demo."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agents.doors.web.pages import PersonRequest, page
from agents.services.demo import start_demo_run
from agents.services.errors import ServiceError
from agents.web.home import form_status, show_home
from sandbox.errors import SandboxError


@page
@require_POST
def start_demo(request: PersonRequest) -> HttpResponse:
    """Start a run of the demo task with its data, in a new thread of the user."""
    try:
        run = start_demo_run(request.user, source="web")
    except ServiceError as error:
        return show_home(request, problem=error.message, status=form_status(error))
    except SandboxError as error:
        return show_home(request, problem=f"The demo needs a sandbox. {error}", status=503)
    return redirect("web:run", run_id=run.id)
