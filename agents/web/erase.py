"""The page that erases a conversation. It first shows which data is erased and which is kept."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from agents.doors.web.pages import PersonRequest, page
from agents.kernel.erasure import keepers
from agents.models import Run
from agents.selectors.visible import runs_for
from agents.services.erasure.actions import erase_thread
from agents.services.errors import ServiceError


@page
@require_http_methods(["GET", "HEAD", "POST"])
def erase(request: PersonRequest, run_id: str) -> HttpResponse:
    """Erase the thread of one of the user's own runs. A GET only shows the confirmation page."""
    run = get_object_or_404(
        runs_for(request.user).select_related("thread"), pk=run_id, owner=request.user, parent=None
    )
    if request.method == "POST":
        try:
            erase_thread(run.thread_id, by=request.user)
        except ServiceError as error:
            messages.error(request, error.message)
            return redirect("web:run", run_id=run.pk)
        messages.success(request, gettext("The conversation is erased."))
        return redirect("web:history")
    found = [(keeper, keeper.find(run.thread_id)) for keeper in keepers()]
    kept = [(keeper, things) for keeper, things in found if things]
    context = {
        "run": run,
        "runs": Run.objects.filter(thread=run.thread_id, is_copy=False).count(),
        "kept": kept,
    }
    return render(request, "web/erase.html", context)
