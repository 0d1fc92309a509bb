"""Run an ASGI application in a Django view and stream its answer as Django's response.

So its requests pass all of the project's Django middleware.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from contextvars import Context
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from agents.services.audit import FindOrigin, acting, present_origin

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_OF_THE_SERVER = frozenset({"connection", "content-length", "transfer-encoding", "date", "server"})
"""Headers that only the web server may send."""


async def answer_by(
    application: Application, request: HttpRequest, body: bytes, **more: Any
) -> HttpResponseBase:
    """Return the response of `application` to `request` with `body`; `more` is added to its scope.

    If the client disconnects, the application is cancelled.
    """
    exchange = _Exchange(application, _scope_of(request, body, more), body)
    try:
        start = await exchange.next_message()
        if start is None:
            raise RuntimeError("The application sent no answer.")
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]
        }
        headers = {name: value for name, value in headers.items() if name not in _OF_THE_SERVER}
        response: HttpResponseBase
        if headers.get("content-type", "").startswith("text/event-stream"):
            response = _Stream(exchange, status=start["status"], headers=headers)
        else:
            whole = b"".join([part async for part in exchange.parts()])
            response = HttpResponse(whole, status=start["status"], headers=headers)
            if not whole and "content-type" not in headers:
                del response["Content-Type"]
        return response
    except BaseException:
        exchange.cancel()
        raise


def _scope_of(request: HttpRequest, body: bytes, more: dict[str, Any]) -> Scope:
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in request.headers.items()
        # The caller is authenticated already, so the application does not get the credentials.
        if name.lower() not in ("authorization", "cookie", "content-length", "transfer-encoding")
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [*headers, (b"content-length", str(len(body)).encode())],
        "client": None,
        "server": None,
        **more,
    }


class _Exchange:
    """One request and the task that answers it. The task waits until its message is read."""

    def __init__(self, application: Application, scope: Scope, body: bytes) -> None:
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._messages: asyncio.Queue[Message] = asyncio.Queue(1)
        self._loop = asyncio.get_running_loop()
        # Below a synchronous middleware, the view's context has a thread for the database that ends
        # with the view. So the task gets its own context and its own thread.
        running = _run(application, scope, self._receive, self._messages.put, present_origin())
        self._task = self._loop.create_task(running, context=Context())

    async def next_message(self) -> Message | None:
        """Return the next message, or None after the last. Raises the application's exceptions."""
        coming = asyncio.ensure_future(self._messages.get())
        try:
            await asyncio.wait({coming, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                return coming.result()
        finally:
            coming.cancel()
        if not self._messages.empty():
            return self._messages.get_nowait()
        await self._task
        return None

    async def parts(self) -> AsyncGenerator[bytes, None]:
        try:
            while (message := await self.next_message()) is not None:
                if message.get("body"):
                    yield message["body"]
                if not message.get("more_body"):
                    break
            await self._task
        finally:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._task})

    def cancel(self) -> None:
        """Cancel the task. May be called from any thread."""
        if not self._task.done() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()  # never set: when the client disconnects, the task is cancelled
        return {"type": "http.disconnect"}


async def _run(
    application: Application, scope: Scope, receive: Receive, send: Send, origin: FindOrigin
) -> None:
    with acting(origin):
        async with ThreadSensitiveContext():
            await application(scope, receive, send)


class _Stream(StreamingHttpResponse):
    def __init__(self, exchange: _Exchange, **options: Any) -> None:
        super().__init__(exchange.parts(), **options)
        self._exchange = exchange

    def close(self) -> None:
        """Cancel the exchange, also if the stream was never read."""
        super().close()
        self._exchange.cancel()
