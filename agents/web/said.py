"""What stands behind a line of a run's page: texts as Markdown, and calls as a whole."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.events.catalogue.messages import TextCompleted
from agents.hidden_text import visible
from agents.models import Run, RunEvent, ToolCall
from agents.review import as_json, call_review
from agents.review.call import readable_tools
from agents.review.parts import NOT_LOOKED_UP
from agents.selectors.visible import runs_for, watchable_runs_for
from agents.web.markdown import markdown_tree
from agents.web.own_files import OwnFiles

TEXTS_AT_ONCE = 50
BYTES_AT_ONCE = 256_000
"""Of one answer; a page asks again for what is left out. One text is always in it."""
WHOLE_CHARACTERS = 2_000_000


@page
@require_safe
def said(request: PersonRequest, run_id: str) -> JsonResponse:
    """`?seq=4,9`: the trees of these events' texts by seq; null for what stays plain text."""
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
    """`?call=`: the last call of that id, uncut: `review` or null, `input`, `output`, `is_cut`."""
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
    """That the file was not looked up is for who decides: here the call is over."""
    for section in review["sections"]:
        notes = section.get("notes", ())
        section["notes"] = [note for note in notes if NOT_LOOKED_UP.reason not in note["text"]]
    return review


def _watchable(request: PersonRequest, run_id: str) -> Run:
    runs = watchable_runs_for(request.user).select_related("agent_version")
    return get_object_or_404(runs, pk=run_id)


def _nothing(named: str) -> None:
    """Files are for those who may read the run, not for all who watch it."""


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in content)
