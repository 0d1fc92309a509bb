"""Pages that fork a run: a new conversation from one of its steps, or with an edited message."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.run_panels import RunPanel
from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.forks.editing import send_edited
from agents.features.forks.files import NONE, NOW, THEN, CopiedFiles
from agents.hidden_text import unescaped_text, visible
from agents.models import Message, MessageRole, Run
from agents.selectors.visible import runs_for
from agents.services.errors import ServiceError
from sandbox.errors import SandboxError

RUN_PANELS = [
    RunPanel(template="vel_forks/edit_panel.html", style="vel_forks/edit.css", place="message")
]
FILES = (
    (THEN, _("as they were after this step")),
    (NOW, _("as they are now")),
    (NONE, _("no files")),
)


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
    _tell_left_out(request, made.files)
    assert made.run is not None  # the request has a message
    return made.run.pk


def _step(text: str, steps: int) -> int:
    """Return the requested step, by default the last one."""
    return min(int(text), steps) if text.isascii() and text.isdecimal() and len(text) < 9 else steps


def _tell_left_out(request: PersonRequest, files: CopiedFiles) -> None:
    if files.left_out:
        left = visible(", ".join(path for path, _ in files.left_out[:5]))
        count = len(files.left_out)
        text = ngettext(
            "%(count)s file was not copied: %(names)s",
            "%(count)s files were not copied: %(names)s",
            count,
        )
        messages.warning(request, text % {"count": count, "names": left})


EDIT_FILES = (
    (THEN, _("as they were before the message")),
    (NOW, _("as they are now")),
    (NONE, _("no files")),
)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: PersonRequest, run_id: str) -> HttpResponse:
    """Show the message of a run to edit it; with POST, send it in a new conversation."""
    runs = runs_for(request.user).filter(owner=request.user.pk, parent=None)
    run = get_object_or_404(runs.select_related("thread__agent", "agent_version"), pk=run_id)
    status = 200
    chosen = THEN
    if request.method == "POST":
        message = unescaped_text(request.POST.get("edited", "").replace("\r\n", "\n"))
        chosen = next((name for name, _ in EDIT_FILES if name == request.POST.get("files")), THEN)
        try:
            made, copied = send_edited(run, message, by=request.user, files=chosen)
        except (ServiceError, SandboxError) as error:
            messages.error(request, visible(str(error)))
            status = error.http_status if isinstance(error, ServiceError) else 503
        else:
            _tell_left_out(request, copied)
            return redirect("web:run", run_id=made.pk)
    else:
        first = Message.objects.filter(run=run, turn=0, role=MessageRole.USER).first()
        message = first.text if first else ""
    context = {"run": run, "message": message, "edit_files": EDIT_FILES, "files": chosen}
    return render(request, "vel_forks/edit.html", context, status=status)


urlpatterns = [
    path("runs/<slug:run_id>/fork/", fork, name="run-fork"),
    path("runs/<slug:run_id>/edit/", edit, name="run-edit"),
]
