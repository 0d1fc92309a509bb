"""The composer on the page of a run: messages with files, names of files, and another attempt."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from agents.doors.web.pages import PersonRequest, page, wants_json
from agents.doors.web.upload_limit import limited_upload
from agents.models import Run
from agents.selectors.visible import runs_for
from agents.services.errors import ServiceError
from agents.services.files.thread_files import has_workspace, readable_files
from agents.services.files.uploads import create_run_with, file_problems
from agents.services.runs.control import resume_run
from agents.services.runs.start import RunRequest
from agents.states import RunStatus
from agents.web.run import page_of_run
from sandbox.backends import FileBackend
from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.errors import FileError, SandboxError
from sandbox.paths import SANDBOX_ROOT

MOST_NAMES = 12
LONGEST_QUERY = 200
MOST_DEPTH = 10
LIMITS = FileLimits(search_entries=5_000, search_seconds=1.0)


@limited_upload
@page
@require_POST
def send_message(request: PersonRequest, run_id: str) -> HttpResponse:
    """Add a message, and files if there are any, to the run's thread. `model` is its model.

    Redirects to the page of the new run, or to this run's page while the new run is pending. After
    an error, the page of this run has the message again. With `Accept: application/json`, the
    response is `url` and `is_queued`, or the problem: `message` for the form, and `files` with a
    text for each file, empty if it is accepted.
    """
    run = _own_run(request.user, run_id)
    text = request.POST.get("message", "").replace("\r\n", "\n")
    model = request.POST.get("model", "")
    files = request.FILES.getlist("files")
    run_request = RunRequest(
        agent=run.thread.agent.slug,
        message=text,
        thread=run.thread_id,
        queue=True,
        source="web",
        model=model,
    )
    try:
        result = create_run_with(
            run_request,
            files,
            owner=request.user,
            idempotency_key=request.POST.get("key") or None,
        )
    except (ServiceError, SandboxError) as error:
        status = error.http_status if isinstance(error, ServiceError) else 503
        if wants_json(request):
            problem = {"message": str(error), "files": file_problems(files)}
            return JsonResponse(problem, status=status)
        return page_of_run(
            request, run.pk, text=text, model=model, problem=str(error), status=status
        )
    is_queued = result.run.status == RunStatus.PENDING
    url = reverse("web:run", args=[run.pk if is_queued else result.run.pk])
    if wants_json(request):
        return JsonResponse({"url": url, "is_queued": is_queued})
    return redirect(url)


@page
@require_POST
def retry(request: PersonRequest, run_id: str) -> HttpResponse:
    """Continue a failed run from its last stored state, and go back to its page."""
    run = _own_run(request.user, run_id)
    try:
        resume_run(run.pk)
    except ServiceError as error:
        messages.error(request, error.message)
    return redirect("web:run", run_id=run.pk)


@page
@require_safe
def file_names(request: PersonRequest, run_id: str) -> JsonResponse:
    """Return paths of the thread's files that contain `?q=`, best matches first, as `paths`.

    `is_cut` is true if there are more.
    """
    run = _own_run(request.user, run_id)
    wanted = request.GET.get("q", "")[:LONGEST_QUERY].replace("\0", "").lower()
    in_workspace = has_workspace(run.thread)
    try:
        backend = readable_files(run.thread, in_workspace=in_workspace)
        found = _matching(backend, SANDBOX_ROOT if in_workspace else "/", wanted)
    except (ServiceError, FileError):
        found = {"paths": [], "is_cut": False}  # no files yet, or they are on another machine
    return JsonResponse(found)


def _matching(backend: FileBackend, top: str, wanted: str) -> dict[str, Any]:
    limit = WalkLimit(LIMITS)
    prefix = top.rstrip("/") + "/"
    found = [
        entry.path
        for entry in backend.walk(top, limit, depth=MOST_DEPTH)
        if entry.type == "file"
        and entry.addressable
        and _is_plain(entry.path)
        and wanted in entry.path.removeprefix(prefix).lower()
    ]
    found.sort(key=lambda path: (not _name(path).startswith(wanted), len(path), path))
    is_cut = limit.cut is not None or len(found) > MOST_NAMES
    return {"paths": found[:MOST_NAMES], "is_cut": is_cut}


def _is_plain(path: str) -> bool:
    """Return whether a path can be written into a message as people see it."""
    return path.isprintable() and '"' not in path


def _name(path: str) -> str:
    return path.rpartition("/")[2].lower()


def _own_run(person: User, run_id: str) -> Run:
    """Return a run to which `person` may add a message."""
    runs = runs_for(person).select_related("thread__agent")
    return get_object_or_404(runs, pk=run_id, owner=person, parent=None)
