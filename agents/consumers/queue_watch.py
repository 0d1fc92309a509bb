"""One query of the queue per second for all sockets that watch it in this process.

One database access serves all sockets: it checks whether a request has changed, and reads the
queues of people who are due. Sockets with the same session or token share a read. An idle socket
uses neither a thread nor a database connection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import Error

from agents.doors.websockets.base import INTERNAL_ERROR, Credentials, Refused, reader_of
from agents.selectors.queue import Waiting, waiting_for, waiting_for_all

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
RECHECK_SECONDS = 10.0
"""After this time the person's right is checked again, even if no request has changed."""

Found = Waiting | Refused


class Watcher:
    """A socket that watches a queue. `news` is set on each change: clear it, then call `found`."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self.news = asyncio.Event()
        self.read_at = float("-inf")
        self._found: Found | None = None

    def found(self) -> Waiting:
        """Return the pending requests. Raises `Refused` if the right to see them has ended."""
        assert self._found is not None
        if isinstance(self._found, Refused):
            raise self._found
        return self._found

    def tell(self, found: Found, read_at: float) -> None:
        self.read_at = read_at
        if found != self._found:
            self._found = found
            self.news.set()


class QueueWatch:
    """Sets `news` of its watchers when their queues have changed. Belongs to one event loop.

    It queries the database only while there are watchers.
    """

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self._looking: asyncio.Task[None] | None = None
        self._has_new = asyncio.Event()

    @property
    def is_looking(self) -> bool:
        return self._looking is not None

    @asynccontextmanager
    async def watching(self, credentials: Credentials) -> AsyncIterator[Watcher]:
        """Yield a watcher. Its first news is the current state of the queue."""
        watcher = Watcher(credentials)
        self._watchers.add(watcher)
        self._has_new.set()
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
            self._has_new.clear()
            now = time.monotonic()
            due = {each for each in self._watchers if now - each.read_at >= RECHECK_SECONDS}
            others = self._watchers - due
            try:
                seen, found = await database_sync_to_async(_read)(
                    seen, _by_key(due), _by_key(others)
                )
            except Error as error:
                log.warning("The queue cannot be read; looking again: %s", error)
                seen, found = "", {}
            except Exception:  # without an answer, these and all later sockets would wait for ever
                log.exception("the queue could not be read")
                keys = [each.credentials.key for each in (*due, *others)]
                seen, found = "", dict.fromkeys(keys, Refused(INTERNAL_ERROR))
            for watcher in (*due, *others):
                if watcher.credentials.key in found:
                    watcher.tell(found[watcher.credentials.key], now)
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._has_new.wait()
            except TimeoutError:
                pass  # next query


def _by_key(watchers: Iterable[Watcher]) -> dict[str, Credentials]:
    return {watcher.credentials.key: watcher.credentials for watcher in watchers}


def _read(
    seen: str, due: dict[str, Credentials], others: dict[str, Credentials]
) -> tuple[str, dict[str, Found]]:
    """Return the version of the whole queue, and the result of each read by credentials key.

    `due` are always read, `others` only if the version differs from `seen`. The version is "" if
    the queue has changed during the read.
    """
    version = waiting_for_all().version
    wanted = due | others if version != seen else due
    found = {key: _found(credentials) for key, credentials in wanted.items()}
    # The results may be newer than the version. In that case the next query reads them again.
    if found and waiting_for_all().version != version:
        version = ""
    return version, found


def _found(credentials: Credentials) -> Found:
    try:
        return waiting_for(reader_of(credentials))
    except Refused as refusal:
        return refusal
    except Error:
        raise
    except Exception:  # an error of one person must not affect others
        log.exception("a person's queue could not be read")
        return Refused(INTERNAL_ERROR)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, QueueWatch] = WeakKeyDictionary()


def queue_watch() -> QueueWatch:
    """Return the watch of the running event loop."""
    return _watches.setdefault(asyncio.get_running_loop(), QueueWatch())
