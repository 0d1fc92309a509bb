"""Pictures that a run made, shown in its page: only as pixels that were written anew."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from agents.png import MAX_BYTES, NotAPicture, remade_png
from agents.selectors.visible import runs_for
from agents.web.files import deliverable
from agents.web.pages import PersonRequest, page

HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@page
@require_safe
def picture(request: PersonRequest, run_id: str, path: str) -> HttpResponse:
    """One deliverable as a picture. 404 for whatever is none, or not the person's."""
    run = get_object_or_404(runs_for(request.user).select_related("thread"), pk=run_id)
    opened = deliverable(run, path)
    with opened.stream as stream:
        data = stream.read(MAX_BYTES + 1)
    try:
        made = remade_png(data)
    except NotAPicture as error:
        raise Http404(str(error)) from None
    return HttpResponse(made, content_type="image/png", headers=HEADERS)
