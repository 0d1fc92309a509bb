"""The socket of a person's approval queue: how many wait, and that something has changed."""

from __future__ import annotations

import asyncio
import json
import logging
import time

from channels.db import database_sync_to_async

from agents.consumers.base import Consumer
from agents.consumers.credentials import Credentials, credentials_of
from agents.consumers.queue_watch import Watcher, queue_watch
from agents.consumers.run import FORBIDDEN, INTERNAL_ERROR, UNAUTHENTICATED
from agents.models import TokenScope
from agents.selectors.queue import Waiting, waiting_for
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed

log = logging.getLogger(__name__)

RECHECK_SECONDS = 10.0
"""After so long the person is looked up again, whether or not there is news."""


class _Refused(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


class QueueConsumer(Consumer):
    """`ws/approvals/`: `{"type": "queue", "pending": 3, "version": "…"}` at once and on change.

    Only counts of what the person may see: requests themselves are fetched over HTTP. What a
    client sends is ignored. Closed with 4401 (nobody, or no longer anybody) or 4403 (token without
    the scope `read`): a client should not try those again.
    """

    async def connect(self) -> None:
        self._following: asyncio.Task[None] | None = None
        self._credentials: Credentials = credentials_of(self.scope)
        # Before the handshake is accepted a close has no code that a page could read.
        await self.accept()
        self._following = asyncio.create_task(self._follow())

    async def disconnect(self, code: int) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        pass

    async def _follow(self) -> None:
        try:
            async with queue_watch().watching() as watcher:
                await self._tell_changes(watcher)
        except _Refused as refused:
            await self.close(refused.code)
        except Exception:  # nobody awaits this task: the client would wait for ever
            log.exception("a queue's socket failed")
            await self.close(INTERNAL_ERROR)

    async def _tell_changes(self, watcher: Watcher) -> None:
        person, checked_at = await self._person(), time.monotonic()
        told: Waiting | None = None
        while True:
            watcher.news.clear()
            if time.monotonic() - checked_at >= RECHECK_SECONDS:
                person, checked_at = await self._person(), time.monotonic()
            waiting = await database_sync_to_async(waiting_for)(person)
            if waiting != told:
                frame = {"type": "queue", "pending": waiting.count, "version": waiting.version}
                await self.send(text_data=json.dumps(frame))
                told = waiting
                watcher.has_read = True
            try:
                left = checked_at + RECHECK_SECONDS - time.monotonic()
                await asyncio.wait_for(watcher.news.wait(), max(left, 0))
            except TimeoutError:
                pass  # time to look the person up again

    async def _person(self) -> Person:
        """Looked up anew: a user object remembers its permissions."""
        try:
            person = await self._credentials.person(TokenScope.READ)
        except NotAllowed:
            raise _Refused(FORBIDDEN) from None
        if not person.is_authenticated:
            raise _Refused(UNAUTHENTICATED)
        return person
