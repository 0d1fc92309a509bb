"""One look at the queue each second for all who watch it in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import DatabaseError

from agents.selectors.queue import waiting_for_all

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class Watcher:
    """`news` is set when something changed; whoever waits for it clears it before reading."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.has_read = False
        """Set it when a read has found something new: it may be newer than the last look, and a
        change back to what that look saw would go unnoticed. Then the next look is news, too."""


class QueueWatch:
    """Tells its watchers when any request came, was decided or was withdrawn. Of one event loop.

    A look is one query whatever the number of watchers, and none is made while nobody watches.
    """

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_looking(self) -> bool:
        return self._looking is not None

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Watcher]:
        """A watcher that hears of each change from now on."""
        watcher = Watcher()
        self._watchers.add(watcher)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            if not self._watchers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look(self) -> None:
        seen = ""
        while True:
            # Before the look: what they read meanwhile is for the next one.
            ahead = {watcher for watcher in self._watchers if watcher.has_read}
            for watcher in ahead:
                watcher.has_read = False
            try:
                version = (await database_sync_to_async(waiting_for_all)()).version
            except DatabaseError as error:
                log.warning("The queue cannot be read; looking again: %s", error)
                version = ""
            for watcher in self._watchers if version != seen else ahead:
                watcher.news.set()
            seen = version
            await asyncio.sleep(LOOK_SECONDS)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, QueueWatch] = WeakKeyDictionary()


def queue_watch() -> QueueWatch:
    """The one of the running event loop; a server has one loop."""
    return _watches.setdefault(asyncio.get_running_loop(), QueueWatch())
