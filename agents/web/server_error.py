"""The page for an unexpected error."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.defaults import server_error as django_server_error

from agents.disk_space import full_disk
from agents.doors.web.page_policy import CONTENT_SECURITY_POLICY
from agents.services.errors import NoSpace


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Return the response to an unexpected error, as Django's `handler500`.

    If the disk is full, the response is a 507 with the reason, as HTML or JSON. It does not use the
    database or the session.
    """
    error = sys.exc_info()[1]
    text = full_disk(error) if error is not None else ""
    if not text:
        return django_server_error(request)
    if request.headers.get("accept", "").startswith("application/json"):
        return JsonResponse({"message": text, "code": NoSpace.code}, status=507)
    response = HttpResponse(render_to_string("web/disk_full.html", {"text": text}), status=507)
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response.headers["Cache-Control"] = "no-store"
    return response
