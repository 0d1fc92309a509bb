"""A run's event log in pages, and downloads of texts that are too long for a page."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left, Length
from django.http import Http404, HttpResponse

from agents.doors.admin.text import shown
from agents.events.read import MAX_SEQ
from agents.models import Message, Run, RunEvent, ToolCall

EVENTS_PER_PAGE = 200
EVENT_CHARACTERS = 600
_PARTS_OF_CALLS = ("input", "edited_input", "result")


def events_page(run: Run, before: str) -> dict[str, Any]:
    """Return the last page of the run's events, or the page before the seq `before`."""
    rows = RunEvent.objects.filter(run=run)
    if before.isdecimal() and len(before) <= len(str(MAX_SEQ)):
        rows = rows.filter(seq__lt=min(int(before), MAX_SEQ))
    found = (
        rows.defer("data")
        .annotate(start=Left("data", EVENT_CHARACTERS), size=Length("data"))
        .order_by("-seq")[:EVENTS_PER_PAGE]
    )
    events = [(event, shown(event.start, size=event.size)) for event in reversed(found)]
    return {
        "events": events,
        "events_before": before,
        "older_events": events[0][0].seq if events and events[0][0].seq > 1 else None,
    }


def whole_text_response(run: Run, part: str, pk: int) -> HttpResponse:
    """Return the JSON of a message, or of a call's input or result, as a download.

    Raises `Http404` if the run has no such text.
    """
    if part == "message":
        texts: QuerySet[Any, Any] = Message.objects.filter(run=run, pk=pk).values_list(
            "content", flat=True
        )
    elif part in _PARTS_OF_CALLS:
        texts = ToolCall.objects.filter(run=run, pk=pk).values_list(part, flat=True)
    else:
        raise Http404
    text = texts.first()
    if text is None:
        raise Http404
    return HttpResponse(
        text.encode("utf-8", "backslashreplace"),
        headers={
            "Content-Type": "application/json",
            "Content-Disposition": f'attachment; filename="{part}-{pk}.json"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
        },
    )
