"""One request to Google over HTTPS, with limits of time and size and without redirects."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

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
                "Google's answer is not JSON. An operator should check the configured address.",
                "malformed",
                status=self.status,
            )
        return value


class _NoRedirect(HTTPRedirectHandler):
    """A handler that refuses redirects, which would send the token to another server."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


class _Deadline:
    """Shuts down the connection of a request when its time is over.

    The timeout of a socket is only for the wait for the next bytes.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()

    def watch(self, connected: socket.socket) -> None:
        with self._lock:
            self._socket = connected
            if self.is_over:
                self._shut_down()

    def _cut(self) -> None:
        with self._lock:
            self.is_over = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it is closed
                # Not that of `SSLSocket`, which another thread may be reading.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Request(Request):
    """A request with its deadline, for the handlers."""

    deadline: _Deadline


class _Http(HTTPConnection):
    def __init__(self, *arguments: Any, deadline: _Deadline, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        self._deadline.watch(self.sock)


class _Https(_Http, HTTPSConnection):
    pass


class _HttpHandler(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        assert isinstance(req, _Request)
        return self.do_open(partial(_Http, deadline=req.deadline), req)


class _HttpsHandler(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        assert isinstance(req, _Request)
        return self.do_open(partial(_Https, deadline=req.deadline), req)


@lru_cache(maxsize=1)
def _opener() -> OpenerDirector:
    return build_opener(_NoRedirect, _HttpHandler, _HttpsHandler)


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
        raise GoogleFailed(
            "The time limit was reached before the request to Google. Request less.", "timeout"
        )
    request = _Request(url, data=body, headers=dict(headers), method=method)
    with _Deadline(seconds) as deadline:
        request.deadline = deadline
        try:
            response: Any = _opener().open(request, timeout=max(1.0, seconds))
        except HTTPError as error:
            response = error
        except (URLError, HTTPException, OSError, ValueError) as error:
            # Raised without its cause: its traceback could show the request's headers.
            unknown = writes and not _never_sent(error)
            raise unreachable(_reason(error, deadline), unknown=unknown) from None
        try:
            with response:
                content = _read(response, deadline)
        except (HTTPException, OSError, ValueError) as error:
            raise unreachable(_reason(error, deadline), unknown=writes) from None
    return Answer(response.status, content, response.headers.get("Retry-After", ""))


def _read(response: HTTPResponse, deadline: _Deadline) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := response.read1(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER:
            raise ValueError("too large")
    if deadline.is_over:
        raise TimeoutError
    if response.length:  # the connection was closed before the end
        raise ConnectionError
    return b"".join(parts)


def _reason(error: Exception, deadline: _Deadline) -> Exception:
    """Return the cause of a failed request, which may be its deadline."""
    return TimeoutError() if deadline.is_over else error


def _never_sent(error: BaseException) -> bool:
    reason = getattr(error, "reason", error)
    kinds = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
    return isinstance(reason, kinds) or isinstance(error, ValueError)
