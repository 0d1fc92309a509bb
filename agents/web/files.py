"""The deliverables of a run: a list, downloads as attachments, and pictures.

The page of the run displays pictures after their pixels are encoded again. Vel encodes PNG itself,
other formats in a sandbox: see `agents.services.files.shown_pictures`.
"""

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
from agents.png import MAX_BYTES, NotAPicture
from agents.selectors.visible import runs_for
from agents.services.files.shown_pictures import (
    TooManyPictures,
    is_picture,
    is_shown,
    shown_picture,
    why_not_shown,
)
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
"""For people who can watch the run but not read it."""
LIMITS = FileLimits(search_entries=2_000, search_seconds=1.0)


def list_files(run: Run) -> dict[str, Any]:
    """Return the deliverables of the run's thread.

    `files` is a list of at most `MAX_FILES` dictionaries, sorted by name: `name`, the whole `path`,
    `size` in bytes, `url` and `picture` (a URL). All of these except `name` and `path` can be None.
    `is_cut` is true if the list is incomplete. `not_shown` is the reason why some pictures cannot
    be displayed, or "".
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
            files.append(
                {
                    "name": path,
                    "path": entry.path,
                    "size": size,
                    "url": _url(run, path),
                    "picture": picture,
                }
            )
    except FileError:
        pass  # no directory: the run has no deliverables
    files.sort(key=lambda file: str(file["name"]))
    return {"files": files, "is_cut": walk_limit.cut is not None, "not_shown": not_shown}


@page
@require_safe
def download(request: PersonRequest, run_id: str, path: str) -> HttpResponseBase:
    """Send one deliverable as an attachment. Returns 404 if it does not exist or is not visible."""
    run = get_object_or_404(runs_for(request.user).select_related("thread"), pk=run_id)
    return sent_file(request, deliverable(run, path), path)


def sent_file(request: PersonRequest, opened: OpenedFile, path: str) -> HttpResponseBase:
    """Send an open file as an attachment. Returns 429 if the user has too many downloads."""
    try:
        slot = take_place(request.user.pk)
    except (TooManyConnections, NoRoom) as refused:
        opened.stream.close()
        return HttpResponse(refused.message, status=429, content_type="text/plain")
    return attachment(opened, path, slot)


def deliverable(run: Run, path: str) -> OpenedFile:
    """Return a deliverable of the run's thread, open for reading. Raises `Http404` if missing."""
    backend, top = _backend_of(run)
    try:
        full = backend.resolve(f"{top.rstrip('/')}/{path}")
        if not is_within(full, top):
            raise Http404("Only deliverables can be downloaded.")
        return backend.open_file(full)
    except FileError as error:
        raise Http404(str(error)) from None


def _backend_of(run: Run) -> tuple[FileBackend, str]:
    """Return the backend of the thread's files and the directory of its deliverables."""
    in_workspace = bool(run.spec["sandbox"])
    files = readable_files(run.thread, in_workspace=in_workspace)
    return files, OUTPUTS if in_workspace else "/"


def _url(run: Run, path: str, name: str = "web:run-file") -> str | None:
    """Return the URL of a file. None for a path with a line break: no URL pattern matches it."""
    if "\n" in path:
        return None
    return reverse(name, args=[run.pk, "-"]).removesuffix("-") + quote(path)


HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}

LATER = {"Retry-After": "10"}


@page
@require_safe
def picture(request: PersonRequest, run_id: str, path: str) -> HttpResponse:
    """Return one deliverable as a picture. Returns 404 if it is not a picture or not visible.

    Returns 503 while too many pictures are encoded.
    """
    run = get_object_or_404(runs_for(request.user).select_related("thread"), pk=run_id)
    return encoded_picture(run, deliverable(run, path))


def encoded_picture(run: Run, opened: OpenedFile) -> HttpResponse:
    """Return an open file of the run's thread as a picture that Vel has encoded again.

    Returns 503 while too many pictures are encoded. Raises `Http404` if it is not a picture.
    """
    with opened.stream as stream:
        data = stream.read(MAX_BYTES + 1)
    try:
        result = shown_picture(run.thread, data)
    except NotAPicture as error:
        raise Http404(str(error)) from None
    except TooManyPictures as error:
        return HttpResponse(str(error), status=503, content_type="text/plain", headers=LATER)
    return HttpResponse(result, content_type="image/png", headers=HEADERS)
