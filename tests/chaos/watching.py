"""Watchers that behave like pages: from a run's start, through the live events, to its end."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from agents.events.tail import Tail, source_of_default_database
from tests.support.hang import HANG


class Watchers:
    """A context manager that follows any number of runs on a separate event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="watchers")
        self._tail = Tail(source_of_default_database)
        self._following: dict[str, Future[list[dict[str, Any]]]] = {}

    def __enter__(self) -> Watchers:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for following in self._following.values():
            following.cancel()
        asyncio.run_coroutine_threadsafe(self._settle(), self._loop).result(timeout=HANG)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def follow(self, run_id: str) -> None:
        self._following[run_id] = asyncio.run_coroutine_threadsafe(self._take(run_id), self._loop)

    def seen(self, run_id: str, timeout: float = 30) -> list[dict[str, Any]]:
        """Return the events that the watcher of an ended run received, in order."""
        return self._following[run_id].result(timeout)

    async def _take(self, run_id: str) -> list[dict[str, Any]]:
        return [event async for event in self._tail.follow(run_id)]

    async def _settle(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
