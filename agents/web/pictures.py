"""Pictures of a run, displayed in its page after their pixels are encoded again.

Vel encodes PNG itself, other formats in a sandbox: see `agents.services.files.shown_pictures`.
"""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.png import MAX_BYTES, NotAPicture
from agents.selectors.visible import runs_for
from agents.services.files.shown_pictures import TooManyPictures, shown_picture
from agents.web.files import deliverable

HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}

LATER = {"Retry-After": "10"}


@page
@require_safe
def picture(request: PersonRequest, run_id: str, path: str) -> HttpResponse:
    """Return one deliverable as a picture. Returns 404 if it is not a picture or not visible."""
    run = get_object_or_404(runs_for(request.user).select_related("thread"), pk=run_id)
    opened = deliverable(run, path)
    with opened.stream as stream:
        data = stream.read(MAX_BYTES + 1)
    try:
        result = shown_picture(run.thread, data)
    except NotAPicture as error:
        raise Http404(str(error)) from None
    except TooManyPictures as error:
        return HttpResponse(str(error), status=503, content_type="text/plain", headers=LATER)
    return HttpResponse(result, content_type="image/png", headers=HEADERS)
