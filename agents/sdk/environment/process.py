"""The engine of this process, which all its agents share.

The first run starts the engine. It stops with the last agent or with the process.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from agents.at_exit import before_threads_end
from agents.ids import own_executor
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Import late, because this module needs Django's apps.
    from agents.engine import worker as workers


T = TypeVar("T")

GRACE = 2.0
"""The seconds that active steps have to end when the engine stops."""


class Engine:
    """The engine of a process: one worker, whose threads do all database work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: workers.Worker | None = None
        self._pid = 0
        self._users: set[object] = set()
        self._watches_exit = False

    def join(self, user: object) -> None:
        """Register `user`, an object that needs the engine, and start the engine if necessary.

        The first call blocks until the engine has started.
        """
        with self._lock:
            if self._pid != os.getpid():  # a fork has no threads of its parent
                self._worker, self._users = None, set()
            self._users.add(user)
            if self._worker is None:
                worker = workers.Worker(executor=own_executor())
                worker.start()
                self._worker, self._pid = worker, os.getpid()
                self._stop_with_process()

    def leave(self, user: object) -> None:
        """Remove `user`, and stop the engine if it has no other users.

        Blocks until its threads have ended.
        """
        with self._lock:
            self._users.discard(user)
            if self._users or self._worker is None or self._pid != os.getpid():
                return
            worker, self._worker = self._worker, None
        worker.stop(grace=GRACE)

    def discard(self, user: object) -> None:
        """Remove a user without stopping the engine.

        Agents call this from any thread when collected.
        """
        self._users.discard(user)

    @property
    def is_running(self) -> bool:
        return self._worker is not None

    @property
    def worker(self) -> workers.Worker:
        if self._worker is None:
            raise RuntimeError("The engine is not running: call join first.")
        return self._worker

    def ask(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Call a function in a transaction on the engine's database thread. Return its future."""
        return self.worker.ask(function, *arguments)

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Await the result of `ask`. If the caller is cancelled, the work continues."""
        return await asyncio.shield(asyncio.wrap_future(self.ask(function, *arguments)))

    def _stop_with_process(self) -> None:
        if not self._watches_exit:
            self._watches_exit = True
            before_threads_end(self._stop)

    def _stop(self) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None and self._pid == os.getpid():
            worker.stop(grace=GRACE)


engine = Engine()
