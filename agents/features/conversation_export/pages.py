"""The downloads on the pages: links on the page of a run, and in the list of conversations."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.run_panels import RunPanel
from agents.features.conversation_export.downloads import FORMATS, MARKDOWN, download
from agents.features.conversation_export.reading import Conversation
from agents.services.errors import NotFound
from agents.services.open_connections import NoRoom, TooManyConnections, take_place

RUN_PANELS = [RunPanel(template="vel_conversation_export/run_panel.html")]


@page
@require_safe
def export(request: PersonRequest, thread_id: str) -> HttpResponseBase:
    """Send an own conversation as a file in the `?format=`, by default Markdown.

    Returns 429 or 503 if there are too many downloads.
    """
    form = request.GET.get("format", MARKDOWN)
    if form not in FORMATS:
        raise Http404("Expected the format markdown or json.")
    try:
        conversation = Conversation(request.user, thread_id)
        place = take_place(request.user.pk)
    except NotFound as missing:
        raise Http404(missing.message) from None
    except (TooManyConnections, NoRoom) as refused:
        return HttpResponse(refused.message, status=refused.http_status, content_type="text/plain")
    return download(conversation, form, place)


urlpatterns = [
    path("conversations/<slug:thread_id>/export/", export, name="conversation-export"),
]
