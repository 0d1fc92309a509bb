"""Pages that show the files of a conversation to the owner."""

from __future__ import annotations

from collections.abc import Mapping
from io import BufferedIOBase
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from agents.documents.pdf_page import MOST_PAGES, PAGE_SIDE, PdfPage
from agents.doors.downloads import attached_file
from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.run_panels import RunPanel
from agents.features.file_browser.archive import zip_of
from agents.features.file_browser.pdf_pages import CHANGED, Busy, digest_of, kept_page, page_of
from agents.features.file_browser.previews import Preview, preview_of, sorted_rows
from agents.features.file_browser.tree import tree_of
from agents.models import Run
from agents.selectors.visible import runs_for
from agents.services.errors import ServiceError
from agents.services.files.thread_files import has_workspace, readable_files
from agents.services.open_connections import NoRoom, TooManyConnections, take_place
from agents.web.files import HEADERS, encoded_picture, sent_file
from sandbox.backends import FileBackend
from sandbox.backends.protocol import OpenedFile
from sandbox.errors import FileError
from sandbox.paths import SANDBOX_ROOT

RUN_PANELS = [
    RunPanel(template="vel_file_browser/run_panel.html", script="vel_file_browser/panel.js")
]
LONGEST = 4_000
PAGES_AT_ONCE = 10
"""Pages of a PDF on a page, and how many more its link adds."""
RETRY = {"Retry-After": "3"}
KEPT_BY_BROWSERS = "private, no-cache"
"""The browser asks before each use. So nobody sees a page of a file that was erased, or after
signing out; an unchanged page costs no rendering."""


@page
@require_safe
def browse(request: PersonRequest, run_id: str) -> HttpResponse:
    """Show the tree of files. `?path=` previews a file; `?sort=` and `?desc=1` sort a table."""
    run = _own_run(request, run_id)
    backend, top = _files_of(run)
    tree = tree_of(backend, top)
    chosen = _path(request)
    context: dict[str, Any] = {"run": run, "tree": tree, "path": chosen, "top": top}
    if chosen:
        context |= _preview(request, run, backend, chosen)
    return render(request, "vel_file_browser/browse.html", context)


@page
@require_safe
def download(request: PersonRequest, run_id: str) -> HttpResponseBase:
    """Send the file `?path=` as an attachment."""
    run = _own_run(request, run_id)
    backend, _ = _files_of(run)
    return sent_file(request, _opened(backend, _path(request)), _path(request))


@page
@require_safe
def picture(request: PersonRequest, run_id: str) -> HttpResponse:
    """Send the file `?path=` as a picture that Vel has encoded again."""
    run = _own_run(request, run_id)
    backend, _ = _files_of(run)
    return encoded_picture(run, _opened(backend, _path(request)))


# Not `page`, which forbids the browser to keep anything.
@transaction.non_atomic_requests
@login_required
@require_safe
def pdf_page(request: PersonRequest, run_id: str) -> HttpResponse:
    """Send a page of the PDF `?path=` as a picture: `?number=`, by default the first.

    With `?digest=`, the file must still be the one with this digest.
    """
    run = _own_run(request, run_id)
    backend, _ = _files_of(run)
    chosen = _path(request)
    number = _number(request, "number", 1)
    with _opened(backend, chosen).stream as stream:
        if not _is_pdf(chosen):
            raise Http404("It is no PDF.")
        digest = digest_of(stream)
        if request.GET.get("digest", digest) != digest:
            return _refused(CHANGED)
        headers = {**HEADERS, "Cache-Control": KEPT_BY_BROWSERS}
        tag = f'"{digest}-{number}-{PAGE_SIDE}"'
        unchanged = get_conditional_response(request, etag=tag)
        if unchanged is not None:
            for name, value in headers.items():
                unchanged.headers[name] = value
            return unchanged
        try:
            found = page_of(run.thread, request.user.pk, stream, digest, number)
        except Busy as busy:
            return _refused(str(busy), busy.status, RETRY)
    result = found if isinstance(found, str) else found.picture
    if isinstance(result, str):
        return _refused(result)
    return HttpResponse(result, content_type="image/png", headers={**headers, "ETag": tag})


def _refused(
    reason: str, status: int = 404, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    return HttpResponse(
        gettext(reason), status=status, content_type="text/plain; charset=utf-8", headers=headers
    )


@page
@require_safe
def archive(request: PersonRequest, run_id: str) -> HttpResponseBase:
    """Send the directory `?path=`, by default everything, as a zip file."""
    run = _own_run(request, run_id)
    backend, top = _files_of(run)
    chosen = _path(request) or top
    try:
        # Building the file takes time and space: it counts as one of the user's downloads.
        place = take_place(request.user.pk)
    except (TooManyConnections, NoRoom) as refused:
        return HttpResponse(refused.message, status=refused.http_status, content_type="text/plain")
    try:
        made = zip_of(backend, tree_of(backend, backend.resolve(chosen)))
    except FileError as error:
        raise Http404(str(error)) from None
    except ServiceError as error:
        messages.error(request, error.message)
        return redirect("web:run-browse", run_id=run.pk)
    finally:
        place.release()
    name = chosen.rstrip("/").rpartition("/")[2] or "files"
    return attached_file(made, f"{name}.zip", "application/zip")


def _own_run(request: PersonRequest, run_id: str) -> Run:
    """Return a run of the user. Files belong to the owner alone."""
    runs = runs_for(request.user).filter(owner=request.user.pk).select_related("thread__root")
    return get_object_or_404(runs, pk=run_id)


def _files_of(run: Run) -> tuple[FileBackend, str]:
    in_workspace = has_workspace(run.thread)
    try:
        backend = readable_files(run.thread, in_workspace=in_workspace)
    except ServiceError as error:
        raise Http404(error.message) from None
    return backend, SANDBOX_ROOT if in_workspace else "/"


def _path(request: PersonRequest) -> str:
    return request.GET.get("path", "")[:LONGEST].replace("\0", "")


def _opened(backend: FileBackend, chosen: str) -> OpenedFile:
    try:
        return backend.open_file(backend.resolve(chosen))
    except FileError as error:
        raise Http404(str(error)) from None


def _preview(request: PersonRequest, run: Run, backend: FileBackend, chosen: str) -> dict[str, Any]:
    try:
        opened = backend.open_file(backend.resolve(chosen))
    except FileError as error:
        return {"preview": Preview("none", note=str(error)), "size": None}
    as_text = request.GET.get("as") == "text"
    if _is_pdf(chosen) and not as_text:
        with opened.stream as stream:
            return {"size": opened.stat.size} | _pdf_preview(request, run, stream)
    found = preview_of(chosen, opened, run.thread)
    opened.stream.close()
    shown = {"preview": found, "size": opened.stat.size, "is_pdf": _is_pdf(chosen)}
    if found.table is not None:
        shown |= _sorted(request, found)
    return shown


def _pdf_preview(request: PersonRequest, run: Run, stream: BufferedIOBase) -> dict[str, Any]:
    """Return the first pages of a PDF, without their pictures. Renders only the first one."""
    digest = digest_of(stream)
    try:
        first = page_of(run.thread, request.user.pk, stream, digest, 1)
    except Busy as busy:
        return {"preview": Preview("pages", note=str(busy)), "is_pdf": True}
    if isinstance(first, str):
        text = gettext("The pages of the document cannot be shown: %(reason)s.")
        note = text % {"reason": gettext(first)}
        return {"preview": Preview("pages", note=note), "is_pdf": True}
    shown = min(first.count, MOST_PAGES, _number(request, "pages", PAGES_AT_ONCE))
    fields = {"path": _path(request), "digest": digest}
    pages = []
    for number, (width, height) in enumerate(first.sizes[:shown], start=1):
        kept = first if number == 1 else kept_page(run.thread.pk, digest, number)
        known = kept.picture if isinstance(kept, PdfPage) else kept
        pages.append(
            {
                "number": number,
                "width": width,
                "height": height,
                "query": urlencode({**fields, "number": number}),
                "problem": gettext(known) if isinstance(known, str) else "",
            }
        )
    more = min(first.count, MOST_PAGES, shown + PAGES_AT_ONCE)
    return {
        "preview": Preview("pages"),
        "is_pdf": True,
        "pages": pages,
        "count": first.count,
        "next": shown + 1,
        "more": urlencode({"path": _path(request), "pages": more}) if more > shown else "",
        "left_out": first.count - MOST_PAGES if more == shown < first.count else 0,
        "most_pages": MOST_PAGES,
    }


def _is_pdf(path: str) -> bool:
    return path.lower().endswith(".pdf")


def _number(request: PersonRequest, name: str, default: int) -> int:
    """Return a whole number above 0 from the query, or `default`."""
    text = request.GET.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) < 8
    return (int(text) if is_number else 0) or default


def _sorted(request: PersonRequest, found: Preview) -> dict[str, Any]:
    """Return the rows in the requested order, and a link that sorts by each column."""
    assert found.table is not None
    heading = found.table.heading
    text = request.GET.get("sort", "")
    column = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else None
    if column is not None and column >= len(heading):
        column = None
    descending = request.GET.get("desc") == "1"
    rows = found.table.rows
    if column is not None:
        rows = sorted_rows(found.table, column, descending=descending)
    links = [
        {
            "name": name,
            "query": _query(request, number, number == column and not descending),
            "order": ("descending" if descending else "ascending") if number == column else "none",
        }
        for number, name in enumerate(heading)
    ]
    return {"rows": rows, "columns": links}


def _query(request: PersonRequest, column: int, descending: bool) -> str:
    fields = {"path": _path(request), "sort": column} | ({"desc": 1} if descending else {})
    return urlencode(fields)


urlpatterns = [
    path("runs/<slug:run_id>/browse/", browse, name="run-browse"),
    path("runs/<slug:run_id>/browse/file/", download, name="run-browse-file"),
    path("runs/<slug:run_id>/browse/picture/", picture, name="run-browse-picture"),
    path("runs/<slug:run_id>/browse/page/", pdf_page, name="run-browse-page"),
    path("runs/<slug:run_id>/browse/zip/", archive, name="run-browse-zip"),
]
