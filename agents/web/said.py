"""Details for the page of a run: texts as Markdown trees, and whole tool calls."""

from __future__ import annotations

import json
import posixpath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from django.http import Http404, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.events.catalogue.messages import TextCompleted
from agents.hidden_text import visible
from agents.models import Run, RunEvent, ToolCall
from agents.review import as_json, call_review
from agents.review.call import readable_tools
from agents.review.parts import NOT_LOOKED_UP
from agents.selectors.visible import runs_for, watchable_runs_for
from agents.services.files.shown_pictures import is_shown
from agents.web.files import OUTPUTS
from agents.web.markdown import markdown_tree

TEXTS_AT_ONCE = 50
BYTES_AT_ONCE = 256_000
"""Limit of one response; the page requests the rest again. It always contains at least one text."""
WHOLE_CHARACTERS = 2_000_000


@page
@require_safe
def said(request: PersonRequest, run_id: str) -> JsonResponse:
    """Return the trees of the texts of events `?seq=4,9`, by seq. None: shown as plain text.

    Texts that do not fit into the response are missing.
    """
    run = _watchable(request, run_id)
    requests = [
        int(word)
        for word in request.GET.get("seq", "").split(",")[:TEXTS_AT_ONCE]
        if word.isdecimal() and len(word) < 16
    ]
    rows = RunEvent.objects.filter(run=run, seq__in=requests, type=TextCompleted.type)
    files = OwnFiles(run)
    may_read = runs_for(request.user).filter(pk=run.pk).exists()
    found: dict[int, Any] = {}
    left = BYTES_AT_ONCE
    for seq, data in rows.order_by("seq").values_list("seq", "data"):
        if found and len(data) > left:
            break
        left -= len(data)
        text = json.loads(data).get("text", "")
        link, picture = (files.download, files.picture) if may_read else (_nothing, _nothing)
        found[seq] = markdown_tree(text, link, picture)
    return JsonResponse({"texts": found})


@page
@require_safe
def whole_call(request: PersonRequest, run_id: str) -> JsonResponse:
    """Return the last call with the id `?call=`: `review`, `input`, `output` and `is_cut`.

    `review` is None for a tool without a review. `input` is the input that ran, or None if it has
    more than `WHOLE_CHARACTERS` characters. `output` is cut to this length; `is_cut` says whether.
    """
    run = get_object_or_404(runs_for(request.user), pk=run_id)
    calls = ToolCall.objects.filter(run=run, call_id=request.GET.get("call", "").replace("\0", ""))
    call = calls.order_by("turn", "position").last()
    if call is None:
        raise Http404("There is no such call.")
    arguments = call.effective_input
    output = _text_of(call.result_content)
    review = None
    if call.tool in readable_tools() and isinstance(arguments, dict):
        review = _without_caveat(as_json(call_review(call.tool, arguments)))
    return JsonResponse(
        {
            "review": review,
            "input": arguments
            if len(call.edited_input or call.input) <= WHOLE_CHARACTERS
            else None,
            "output": visible(output[:WHOLE_CHARACTERS]),
            "is_cut": len(output) > WHOLE_CHARACTERS,
        }
    )


def _without_caveat(review: dict[str, Any]) -> dict[str, Any]:
    """Remove the note that the file was not read: it is for approvers, and this call is over."""
    for section in review["sections"]:
        notes = section.get("notes", ())
        section["notes"] = [note for note in notes if NOT_LOOKED_UP.reason not in note["text"]]
    return review


def _watchable(request: PersonRequest, run_id: str) -> Run:
    runs = watchable_runs_for(request.user).select_related("agent_version")
    return get_object_or_404(runs, pk=run_id)


def _nothing(named: str) -> None:
    """Return None. Used for people who can watch the run but not read its files."""


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in content)


class OwnFiles:
    """Converts file names in a run's texts to URLs of its deliverables.

    `download` and `picture` return None for a name that is not below the deliverables, and
    `picture` also for a file that pages do not show. Neither checks that the file exists.
    """

    def __init__(self, run: Run) -> None:
        self._top = OUTPUTS if run.spec["sandbox"] else "/"
        self._file = reverse("web:run-file", args=[run.pk, "-"]).removesuffix("-")
        self._picture = reverse("web:run-picture", args=[run.pk, "-"]).removesuffix("-")

    def download(self, named: str) -> str | None:
        path = self._path(named)
        return self._file + quote(path) if path else None

    def picture(self, named: str) -> str | None:
        path = self._path(named)
        return self._picture + quote(path) if path and is_shown(path) else None

    def _path(self, named: str) -> str | None:
        """Return the path below the deliverables. `named` is relative or absolute."""
        try:
            parts = urlsplit(named.removeprefix("sandbox:"))
        except ValueError:
            return None
        path = unquote(parts.path)
        if parts.scheme or parts.netloc or not path or path.endswith("/") or not path.isprintable():
            return None
        base = self._top if not path.startswith(("outputs/", "./outputs/")) else "/sandbox"
        full = posixpath.normpath(posixpath.join(base, path))
        inside = full.removeprefix(self._top.rstrip("/") + "/")
        return inside if inside != full and inside else None
