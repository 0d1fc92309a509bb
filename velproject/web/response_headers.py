"""Security headers of every response. Views may set stricter ones.

The middleware adds missing headers to the responses of Django. The web server adds them to all
others: health checks, and errors that Daphne, Twisted or Vel's limits of slow requests answer
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.decorators import sync_and_async_middleware

from agents.doors.web.page_policy import CONTENT_SECURITY_POLICY as PAGES

ADMIN = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)
"""Like that of the pages, but without Trusted Types: scripts of Django's admin set `innerHTML`."""
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""For responses that are not pages: JSON, text, pictures, and errors of the web server."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_POLICY = "Content-Security-Policy"


@sync_and_async_middleware
def response_headers(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware that adds missing headers to each response. It must be the first in the list."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            return _completed(request, await get_response(request))

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _completed(request, get_response(request))

    return answer


def _completed(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    # Django's debug pages have inline styles and scripts.
    if not (settings.DEBUG and response.status_code in (404, 500)):
        response.headers.setdefault(_POLICY, _policy_for(request, response))
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _policy_for(request: HttpRequest, response: HttpResponseBase) -> str:
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return NOTHING
    return ADMIN if request.path_info.startswith(reverse("admin:index")) else PAGES


def missing(present: set[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers that a response lacks. `present` has its header names in lower case."""
    for name, value in {_POLICY: NOTHING, **HEADERS}.items():
        if name.lower().encode() not in present:
            yield name.encode(), value.encode()


def bare_answer(status: HTTPStatus) -> bytes:
    """Return a whole response without a body, which closes the connection."""
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [b"%b: %b" % header for header in missing(set())]
    return b"\r\n".join([*lines, b"Content-Length: 0", b"Connection: close", b"", b""])
