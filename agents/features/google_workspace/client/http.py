"""One request to Google over HTTPS, with limits of time and size and without redirects."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from django.views.decorators.debug import sensitive_variables

from agents.features.google_workspace.client.errors import GoogleFailed, unreachable

MAX_ANSWER = 40 * 1024**2
"""Bytes. An attachment of 25 MB, Gmail's largest, is 34 MB when encoded."""
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    retry_after: str = ""

    def json(self) -> dict[str, Any]:
        """Return the body as an object. Raises `GoogleFailed`."""
        try:
            value = json.loads(self.body) if self.body else {}
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise GoogleFailed(
                "Google's answer is no JSON: an operator should look at the address that is set.",
                "malformed",
                status=self.status,
            )
        return value


class _NoRedirect(HTTPRedirectHandler):
    """A handler that refuses redirects, which would send the token to another server."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


@lru_cache(maxsize=1)
def _opener() -> OpenerDirector:
    return build_opener(_NoRedirect)


@sensitive_variables()
def ask(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    until: float,
    writes: bool = False,
) -> Answer:
    """Send a request and return any answer. With `writes` the request may change data.

    `until` is by `time.monotonic`. Raises `GoogleFailed` without an answer.
    """
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise GoogleFailed("There was no time left to ask Google: ask for less.", "timeout")
    request = Request(url, data=body, headers=dict(headers), method=method)  # noqa: S310
    try:
        response: Any = _opener().open(request, timeout=max(1.0, seconds))
    except HTTPError as error:
        response = error
    except (URLError, HTTPException, OSError, ValueError) as error:
        # Raised without its cause, whose traceback could show the request's headers.
        raise unreachable(error, unknown=writes and not _never_sent(error)) from None
    try:
        with response:
            content = _read(response, until)
    except (HTTPException, OSError, ValueError) as error:
        raise unreachable(error, unknown=writes) from None
    return Answer(response.status, content, response.headers.get("Retry-After", ""))


def _read(response: HTTPResponse, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := response.read1(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER:
            raise ValueError("too large")
        if time.monotonic() > until:
            raise TimeoutError
    if response.length:  # the connection was closed before the end
        raise ConnectionError
    return b"".join(parts)


def _never_sent(error: BaseException) -> bool:
    reason = getattr(error, "reason", error)
    kinds = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
    return isinstance(reason, kinds) or isinstance(error, ValueError)
