"""The socket of a person's approval queue: the number of pending requests, and changes."""

from __future__ import annotations

import asyncio
import json
import logging

from agents.consumers.queue_watch import Watcher, queue_watch
from agents.doors.websockets.base import INTERNAL_ERROR, Consumer, Refused

log = logging.getLogger(__name__)


class QueueConsumer(Consumer):
    """The socket `ws/approvals/`: sends `{"type": "queue", "pending": 3, "version": "…"}`.

    The server sends a frame on connect and after each change. It counts only requests that the
    person can see; clients fetch the requests over HTTP. Frames from the client are ignored.
    Close codes 4401 (not authenticated, or no longer) and 4403 (token without the scope `read`) are
    final: a client should not retry. 4429 (too many sockets or attempts) and 4503 (the server is
    full) follow an error frame with the reason.
    """

    async def start(self) -> None:
        await self.admit()
        self._following = asyncio.create_task(self._follow())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        pass

    async def _follow(self) -> None:
        try:
            async with queue_watch().watching(self.credentials) as watcher:
                await self._tell_changes(watcher)
        except Refused as refusal:
            await self.refuse(refusal)
        except Exception:  # no caller awaits this task: the client would wait for ever
            log.exception("a queue's socket failed")
            await self.close(INTERNAL_ERROR)

    async def _tell_changes(self, watcher: Watcher) -> None:
        while True:
            await watcher.news.wait()
            watcher.news.clear()
            waiting = watcher.found()
            frame = {"type": "queue", "pending": waiting.count, "version": waiting.version}
            await self.send(text_data=json.dumps(frame))
