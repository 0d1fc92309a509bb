"""What a run made for its user: a list, and downloads that no browser opens as a page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.db import transaction
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from agents.conf import vel_settings
from agents.models import Run
from agents.selectors.visible import runs_for
from agents.services.state_files import DatabaseFileStore
from agents.web.pages import PersonRequest, page
from sandbox.backends import FileBackend, StateFilesystemBackend, WorkspaceBackend
from sandbox.backends.budget import Budget, FileLimits
from sandbox.backends.protocol import OpenedFile
from sandbox.errors import FileError, ReadOnlyPath
from sandbox.paths import SANDBOX_ROOT, is_within

OUTPUTS = f"{SANDBOX_ROOT}/outputs"
MAX_DEPTH = 8
MAX_FILES = 200
CHUNK_BYTES = 256 * 1024
LIMITS = FileLimits(search_entries=2_000, search_seconds=1.0)

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def list_files(run: Run) -> dict[str, Any]:
    """The deliverables of the run's thread: `files` of name, size in bytes and url; `is_cut`."""
    backend, top = _backend_of(run)
    budget = Budget(LIMITS)
    files: list[dict[str, Any]] = []
    try:
        for entry in backend.walk(top, budget, depth=MAX_DEPTH):
            if entry.type != "file" or not entry.addressable:
                continue
            if len(files) == MAX_FILES:
                budget.cut_short("too many files")
                break
            path = entry.path.removeprefix(top).lstrip("/")
            found = backend.stat(entry.path)
            size = found.size if found else None
            files.append({"name": path, "size": size, "url": _url(run, path)})
    except FileError:
        pass  # no directory yet: nothing was made
    return {"files": sorted(files, key=lambda file: file["name"]), "is_cut": budget.cut is not None}


@page
@require_safe
def download(request: PersonRequest, run_id: str, path: str) -> StreamingHttpResponse:
    """One deliverable as an attachment. 404 for whatever is none, or not the person's."""
    run = get_object_or_404(runs_for(request.user).select_related("thread"), pk=run_id)
    backend, top = _backend_of(run)
    try:
        full = backend.resolve(f"{top.rstrip('/')}/{path}")
        if not is_within(full, top):
            raise Http404("Only deliverables can be downloaded.")
        opened = backend.open_file(full)
    except FileError as error:
        raise Http404(str(error)) from None
    name = _CONTROLS.sub("_", full.rpartition("/")[2])
    return StreamingHttpResponse(
        Chunks(opened),
        content_type="application/octet-stream",
        headers={
            "Content-Disposition": content_disposition_header(True, name),
            "Content-Length": str(opened.stat.size),
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )


class Chunks:
    """A file's bytes, as many as it had when it was opened. Django closes it after the answer."""

    def __init__(self, opened: OpenedFile) -> None:
        self._opened = opened
        self.close = opened.stream.close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._opened.stat.size
        read = sync_to_async(self._opened.stream.read)
        while left > 0 and (chunk := await read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk


def _backend_of(run: Run) -> tuple[FileBackend, str]:
    """The thread's files and the directory in it that holds deliverables."""
    if run.agent_version.spec["sandbox"]:
        # Not `open_workspace`, which makes what is missing: looking makes nothing.
        return WorkspaceBackend(vel_settings().workspaces / run.thread_id), OUTPUTS
    store = DatabaseFileStore(run.thread_id, _in_transaction, _refuse_writing)
    return StateFilesystemBackend(store), "/"


def _in_transaction(function: Any, *arguments: Any) -> Any:
    with transaction.atomic():
        return function(*arguments)


def _refuse_writing() -> None:
    raise ReadOnlyPath("only the run's own tools write here.")


def _url(run: Run, path: str) -> str | None:
    """None for a path that no URL pattern takes: one with a line break."""
    if "\n" in path:
        return None
    return reverse("web:run-file", args=[run.pk, "-"]).removesuffix("-") + quote(path)
