"""The page that forks a run: a new conversation from one of its steps."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.forks.files import NONE, NOW, THEN
from agents.models import Message, MessageRole, Run
from agents.selectors.visible import runs_for
from agents.services.errors import ServiceError
from sandbox.errors import SandboxError

FILES = ((THEN, "as they were after this step"), (NOW, "as they are now"), (NONE, "no files"))


@page
@require_http_methods(["GET", "HEAD", "POST"])
def fork(request: PersonRequest, run_id: str) -> HttpResponse:
    """Show the form for `?step=`; with POST, fork the run and open the new run."""
    runs = runs_for(request.user).filter(owner=request.user.pk, parent=None)
    run = get_object_or_404(runs.select_related("thread", "agent_version"), pk=run_id)
    steps = Message.objects.filter(run=run, role=MessageRole.ASSISTANT).count()
    given = request.POST if request.method == "POST" else request.GET
    step = _step(given.get("step", ""), steps)
    message = given.get("message", "").replace("\r\n", "\n")
    if request.method == "POST":
        asked = ForkRequest(
            step=step,
            message=message,
            present_version=True,
            files=next((name for name, _ in FILES if name == given.get("files")), THEN),
        )
        try:
            return redirect("web:run", run_id=_fork(run, asked, request))
        except (ServiceError, SandboxError) as error:
            messages.error(request, str(error))
    elif step == 0:
        first = Message.objects.filter(run=run, turn=0, role=MessageRole.USER).first()
        message = first.text if first else ""
    context = {"run": run, "step": step, "steps": range(steps + 1), "message": message}
    return render(request, "vel_forks/fork.html", {**context, "files": FILES})


def _fork(run: Run, asked: ForkRequest, request: PersonRequest) -> str:
    """Return the id of the new run."""
    with prepared_fork(run, asked, by=request.user) as prepared:
        made = complete_fork(prepared)
    if made.files.left_out:
        left = ", ".join(path for path, _ in made.files.left_out[:5])
        messages.warning(request, f"{len(made.files.left_out)} files were not copied: {left}")
    assert made.run is not None  # the request has a message
    return made.run.pk


def _step(text: str, steps: int) -> int:
    """Return the requested step, by default the last one."""
    return min(int(text), steps) if text.isascii() and text.isdecimal() and len(text) < 9 else steps


urlpatterns = [path("runs/<slug:run_id>/fork/", fork, name="run-fork")]
