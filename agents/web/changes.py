"""The page with the changes of a thread to its files. The owner can restore an earlier state."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.hidden_text import visible
from agents.models import Run, WorkspaceSnapshot
from agents.selectors.steps import step_of
from agents.selectors.visible import runs_for
from agents.services.errors import ServiceError
from agents.services.files.changes import changes_between
from agents.services.files.restoring import restore_workspace

SHOWN_STEPS = 100
"""The page lists the last steps of the thread, up to this number."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def changes(request: PersonRequest, run_id: str) -> HttpResponse:
    """Show the steps of the run's thread. `?step=` shows one step with its files and diffs.

    A POST with `step` and `to` (before or after) restores that state.
    """
    run = get_object_or_404(
        runs_for(request.user).select_related("thread"), pk=run_id, owner=request.user
    )
    steps = WorkspaceSnapshot.objects.filter(thread=run.thread_id).select_related("run", "by")
    query = request.POST if request.method == "POST" else request.GET
    step = step_of(run.thread_id, query.get("step"))
    if request.method == "POST":
        _restore(request, run, step)
        return redirect("web:run-changes", run_id=run.pk)
    context = {"run": run, "steps": steps.order_by("-pk")[:SHOWN_STEPS], "step": step}
    if step is not None:
        context |= _files_of(step)
    return render(request, "web/changes.html", context)


def _restore(request: PersonRequest, run: Run, step: WorkspaceSnapshot | None) -> None:
    side = request.POST.get("to")
    if step is None or side not in ("before", "after"):
        messages.error(request, gettext("There is no such step any more."))
        return
    state = step.base if side == "before" else step.manifest
    try:
        done = restore_workspace(run.thread, state, by=request.user)
    except ServiceError as error:
        messages.error(request, error.message)
        return
    numbers = {
        "written": done.written,
        "deleted": done.deleted,
        "failed": len(done.failed),
    }
    if done.failed:
        text = gettext(
            "Restored: %(written)s written, %(deleted)s deleted. %(failed)s could not be restored."
        )
        messages.error(request, text % numbers)
    else:
        text = gettext("Restored: %(written)s written, %(deleted)s deleted.")
        messages.success(request, text % numbers)


def _files_of(step: WorkspaceSnapshot) -> dict[str, Any]:
    try:
        found = changes_between(step.thread_id, step.base, step.manifest)
    except ServiceError as error:
        return {"lost": error.message}
    files = [
        {
            "path": visible(file.path),
            "what": file.what,
            "before": file.size_before,
            "after": file.size_after,
            "diff": visible(file.diff) if file.diff else "",
            "note": visible(file.note),
        }
        for file in found.files
    ]
    return {"files": files, "more": found.total - len(files)}
