"""What a run made for its user: a list, and downloads that no browser opens as a page."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.doors.downloads import attachment
from agents.doors.web.pages import PersonRequest, page
from agents.models import Run
from agents.png import MAX_BYTES
from agents.selectors.visible import runs_for
from agents.services.files.shown_pictures import is_picture, is_shown, why_not_shown
from agents.services.files.thread_files import readable_files
from agents.services.open_connections import NoRoom, TooManyConnections, take_place
from sandbox.backends import FileBackend
from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.backends.protocol import OpenedFile
from sandbox.errors import FileError
from sandbox.paths import SANDBOX_ROOT, is_within

OUTPUTS = f"{SANDBOX_ROOT}/outputs"
MAX_DEPTH = 8
MAX_FILES = 200
NO_FILES = {"files": [], "is_cut": False, "not_shown": ""}
"""For who may watch the run and not read it."""
LIMITS = FileLimits(search_entries=2_000, search_seconds=1.0)


def list_files(run: Run) -> dict[str, Any]:
    """The deliverables of the run's thread.

    `files` of name, size in bytes, url and, for what can be shown, picture; `is_cut`; and
    `not_shown`, which says why some pictures among them are not shown, or is empty.
    """
    not_shown = ""
    backend, top = _backend_of(run)
    walk_limit = WalkLimit(LIMITS)
    files: list[dict[str, Any]] = []
    try:
        for entry in backend.walk(top, walk_limit, depth=MAX_DEPTH):
            if entry.type != "file" or not entry.addressable:
                continue
            if len(files) == MAX_FILES:
                walk_limit.cut_short("too many files")
                break
            path = entry.path.removeprefix(top).lstrip("/")
            found = backend.stat(entry.path)
            size = found.size if found else None
            picture = None
            if size is not None and size <= MAX_BYTES:
                if is_shown(path):
                    picture = _url(run, path, "web:run-picture")
                elif is_picture(path):
                    not_shown = why_not_shown()
            files.append({"name": path, "size": size, "url": _url(run, path), "picture": picture})
    except FileError:
        pass  # no directory yet: nothing was made
    files.sort(key=lambda file: str(file["name"]))
    return {"files": files, "is_cut": walk_limit.cut is not None, "not_shown": not_shown}


@page
@require_safe
def download(request: PersonRequest, run_id: str, path: str) -> HttpResponseBase:
    """One deliverable as an attachment. 404 for whatever is none, or not the person's."""
    run = get_object_or_404(runs_for(request.user).select_related("thread"), pk=run_id)
    opened = deliverable(run, path)
    try:
        slot = take_place(request.user.pk)
    except (TooManyConnections, NoRoom) as refused:
        opened.stream.close()
        return HttpResponse(refused.message, status=429, content_type="text/plain")
    return attachment(opened, path, slot)


def deliverable(run: Run, path: str) -> OpenedFile:
    """One deliverable of the run's thread, open for reading. Http404 for whatever is none."""
    backend, top = _backend_of(run)
    try:
        full = backend.resolve(f"{top.rstrip('/')}/{path}")
        if not is_within(full, top):
            raise Http404("Only deliverables can be downloaded.")
        return backend.open_file(full)
    except FileError as error:
        raise Http404(str(error)) from None


def _backend_of(run: Run) -> tuple[FileBackend, str]:
    """The thread's files and the directory in it that holds deliverables."""
    in_workspace = bool(run.spec["sandbox"])
    files = readable_files(run.thread, in_workspace=in_workspace)
    return files, OUTPUTS if in_workspace else "/"


def _url(run: Run, path: str, name: str = "web:run-file") -> str | None:
    """None for a path that no URL pattern takes: one with a line break."""
    if "\n" in path:
        return None
    return reverse(name, args=[run.pk, "-"]).removesuffix("-") + quote(path)
