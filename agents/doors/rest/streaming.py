"""Long-lived responses: repeated permission checks, a limit per person, and pings.

The view returns in its thread; the stream runs in the server's event loop. A stream buffers only
one event: the rest stays in the database until a slow client reads it.
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
"""Maximum age in seconds of the last permission check when an event is sent.

A stream without events also ends within this time after the permission has ended.
"""

Item = TypeVar("Item")


class RightEnded(Exception):
    """The reader has lost the permission. `code` is the code of a problem."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Access:
    """The permission of the client that opened a stream. `may_read` queries the database.

    Each check loads the user again. The request is not kept, because it contains the body.
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
        """Raise `RightEnded` if the permission has ended. Recent checks are not repeated."""
        if time.monotonic() - self._looked_at < RECHECK_SECONDS:
            return
        looked_at = time.monotonic()
        code = await database_sync_to_async(self._refusal)(self._may_read)
        if code:
            raise RightEnded(code)
        self._looked_at = looked_at

    async def holds_for(self, may_read: Callable[[Person], bool]) -> bool:
        """Return whether the credentials are valid now and the user passes the check `may_read`."""
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
            raise NotAllowed("The token no longer has the scope 'read'.", code="insufficient_scope")
        return user


async def lasting(
    items: AsyncGenerator[Item, None], access: Access
) -> AsyncGenerator[Item | None, None]:
    """Yield `items`, and None after each `RECHECK_SECONDS` without one. Raises `RightEnded`."""
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
    """Count one more long-lived response of the user. See `open_connections.take_place`."""
    token_id = request.auth.pk if isinstance(request.auth, ApiToken) else None
    return take_place(person(request).pk, token_id, kind=kind)


def event_stream(
    frames: AsyncGenerator[str, None], slot: Place, headers: dict[str, str] | None = None
) -> StreamingHttpResponse:
    """Return a `text/event-stream` of whole frames. Frees the view's database connection."""
    free_connection()
    return StreamingHttpResponse(
        _sent(frames, slot),
        content_type="text/event-stream",
        # Disables buffering of events in proxies.
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
    """Close this thread's database connection, except in a transaction.

    A stream can last for hours and needs no connection between two events.
    """
    if not connection.in_atomic_block:
        connection.close()
