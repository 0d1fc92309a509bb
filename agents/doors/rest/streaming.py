"""Responses that last: rights looked at again and again, a limit per person, pings.

The view answers in its thread and ends; what follows runs in the server's event loop. A stream
holds no more than one event: what a slow reader has not taken stays in the database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from importlib import import_module
from typing import TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import connection
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from agents.doors.rest.authentication import TokenAuthentication
from agents.doors.rest.base import person
from agents.models import ApiToken, TokenScope
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed
from agents.services.open_connections import Kind, Place, take_place

RECHECK_SECONDS = 5.0
"""No event goes out on a right that was last looked at longer ago, and a stream whose right has
ended ends after so long, also when there is nothing to send."""

Item = TypeVar("Item")


class RightEnded(Exception):
    """The reader has lost the permission. `code` is the code of a problem."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Access:
    """Whether who opened a stream may still read it. `may_read` asks the database.

    Looked up again each time, and without the request, which holds a body.
    """

    def __init__(self, request: Request, may_read: Callable[[Person], bool]) -> None:
        self._may_read = may_read
        self._token_header: str | None = None
        self._session_key: str | None = None
        if isinstance(request.auth, ApiToken):
            self._token_header = request.META["HTTP_AUTHORIZATION"]
        else:
            self._session_key = request.session.session_key
        self._user_id = person(request).pk
        self._looked_at = time.monotonic()

    async def check(self) -> None:
        """Raise `RightEnded`, unless it was looked at a moment ago or still holds."""
        if time.monotonic() - self._looked_at < RECHECK_SECONDS:
            return
        looked_at = time.monotonic()
        code = await database_sync_to_async(self._refusal)(self._may_read)
        if code:
            raise RightEnded(code)
        self._looked_at = looked_at

    async def holds_for(self, may_read: Callable[[Person], bool]) -> bool:
        """Whether who reads may read something else, too, at this moment."""
        return not await database_sync_to_async(self._refusal)(may_read)

    def _refusal(self, may_read: Callable[[Person], bool]) -> str:
        try:
            user = self._person()
            if not user.is_authenticated or user.pk != self._user_id:
                return "not_authenticated"
            return "" if may_read(user) else "not_found"
        except AuthenticationFailed:
            return "authentication_failed"
        except NotAllowed as refused:
            return refused.code
        finally:
            free_connection()

    def _person(self) -> Person:
        asked = HttpRequest()
        if self._token_header is None:
            store = import_module(settings.SESSION_ENGINE).SessionStore
            asked.session = store(self._session_key)
            return get_user(asked)
        asked.META = {"HTTP_AUTHORIZATION": self._token_header}
        found = TokenAuthentication().authenticate(Request(asked))
        if found is None:
            raise AuthenticationFailed()
        user, token = found
        if TokenScope.READ not in token.scopes:
            raise NotAllowed("The token does not read any more.", code="insufficient_scope")
        return user


async def lasting(
    items: AsyncGenerator[Item, None], access: Access
) -> AsyncGenerator[Item | None, None]:
    """Yield `items`, and None after a while without one. Raises `RightEnded`."""
    waiting: asyncio.Task[Item] | None = None
    async with aclosing(items):
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(anext(items))
                done, _ = await asyncio.wait({waiting}, timeout=RECHECK_SECONDS)
                await access.check()
                if not done:
                    yield None
                    continue
                try:
                    item = waiting.result()
                except StopAsyncIteration:
                    return
                finally:
                    waiting = None
                yield item
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.wait({waiting})


def take_slot(request: Request, *, kind: Kind = "stream") -> Place:
    """Count one more lasting response to the person who asks. See `open_connections.take_place`."""
    token_id = request.auth.pk if isinstance(request.auth, ApiToken) else None
    return take_place(person(request).pk, token_id, kind=kind)


def event_stream(
    frames: AsyncGenerator[str, None], slot: Place, headers: dict[str, str] | None = None
) -> StreamingHttpResponse:
    """`text/event-stream` of whole frames. Frees the view's database connection."""
    free_connection()
    return StreamingHttpResponse(
        _sent(frames, slot),
        content_type="text/event-stream",
        # Proxies that buffer would keep events for themselves.
        headers={"X-Accel-Buffering": "no", **(headers or {})},
    )


async def _sent(frames: AsyncGenerator[str, None], slot: Place) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(frames):
            async for frame in frames:
                yield frame.encode()
    finally:
        slot.release()


def free_connection() -> None:
    """Give this thread's connection back: a stream can last for hours without one."""
    if not connection.in_atomic_block:
        connection.close()
