"""A size limit for forms with files that applies before the form is read."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from agents.settings import UploadSettings

FORM_BYTES = 5_000_000
"""Bytes of a form in addition to its files. The message has its own limit."""

View = Callable[..., HttpResponseBase]


def limited_upload(view: View) -> View:
    """Decorate a view: refuse a body that exceeds a thread's upload limit. See `limited_form`."""
    return limited_form(view, lambda: UploadSettings.now().UPLOAD_BYTES)


def limited_form(view: View, limit: Callable[[], int]) -> View:
    """Decorate a view: refuse a body with more than `limit()` bytes of files with 413.

    The other fields may have `FORM_BYTES` more. A chunked body, which has no length, is refused
    with 411. Django's CSRF check reads the whole form, so it must run after this check.
    """
    protected = csrf_protect(view)

    @wraps(view)
    def limited(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if "Transfer-Encoding" in request.headers or not length.isdecimal():
            return HttpResponse(gettext("Send the form with a Content-Length."), status=411)
        if int(length) > limit() + FORM_BYTES:
            text = gettext("The files are too large: %(limit)s bytes are taken.") % {
                "limit": number_format(limit(), force_grouping=True)
            }
            return HttpResponse(text, status=413, content_type="text/plain")
        return protected(request, *args, **kwargs)

    return csrf_exempt(limited)
