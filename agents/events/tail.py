"""Follow runs live: one thread and one connection for all watchers of a process.

The thread runs while there are watchers. Its source returns the runs with news. The thread wakes
their watchers, which then request pages. So a slow watcher holds one page and no queue, and
watchers of the same run at the same position share one read.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from agents.events.read import Page, RunNotFound, check_position
from agents.events.sqlite import EventSource, SqliteSource
from agents.events.stored import StoredEvent
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Importing psycopg takes 50 ms, which SQLite does not need.
    from agents.events import postgres


log = logging.getLogger(__name__)

RECONNECT_SECONDS = 1.0

_RUN_ID = re.compile("[0-9a-z]{1,26}")
_Request = tuple[str, int]  # a run and the seq before its page


class _Watcher:
    """A watcher of one run in one event loop."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.news = asyncio.Event()
        self.loop = asyncio.get_running_loop()


class Tail:
    """The live tail of one database. Use the process's own, `tail`; methods fit any event loop."""

    def __init__(self, make_source: Callable[[], EventSource]) -> None:
        self._make_source = make_source
        self._lock = threading.Lock()
        # The lock guards all of these.
        self._source: EventSource | None = None
        self._watchers: dict[str, set[_Watcher]] = defaultdict(set)
        self._requests: dict[_Request, list[asyncio.Future[Page | None]]] = defaultdict(list)

    async def follow(
        self, run_id: str, *, after: int = 0, until_end: bool = True
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of `follow_stored` as dictionaries `run_id, seq, type, ts, data`."""
        async for event in self.follow_stored(run_id, after=after, until_end=until_end):
            yield event.as_dict()

    async def follow_stored(
        self, run_id: str, *, after: int = 0, until_end: bool = True
    ) -> AsyncGenerator[StoredEvent, None]:
        """Yield every event of a run with a seq above `after`, in order, and then each new one.

        Ends after the last event of a run that has ended, unless `until_end` is False: a failed run
        may be resumed. Lost connections are opened again, and no event is lost. Close the generator
        (`contextlib.aclosing`) when you leave it early.

        Raises `RunNotFound`, also if the run is deleted during this time, and `ValueError` for an
        impossible `after`.
        """
        check_position(after)
        if not _RUN_ID.fullmatch(run_id):
            raise RunNotFound(f"{run_id!r} is not the id of a run.")
        watcher = _Watcher(run_id)
        self._enter(watcher)
        try:
            while True:
                # Before the read: a later commit sets the flag again.
                watcher.news.clear()
                page = await self._read(run_id, after)
                for event in page.events:
                    after = event.seq
                    yield event
                if page.more:
                    continue
                if until_end and page.ended:
                    return
                await watcher.news.wait()
        finally:
            self._leave(watcher)

    @property
    def is_running(self) -> bool:
        """Return whether the thread and its connection exist.

        They exist while there are watchers.
        """
        with self._lock:
            return self._source is not None

    @property
    def watching(self) -> int:
        """Return the number of streams and sockets that follow a run now."""
        with self._lock:
            return sum(len(watchers) for watchers in self._watchers.values())

    def _enter(self, watcher: _Watcher) -> None:
        with self._lock:
            self._watchers[watcher.run_id].add(watcher)

    def _leave(self, watcher: _Watcher) -> None:
        with self._lock:
            self._watchers[watcher.run_id].discard(watcher)
            if not self._watchers[watcher.run_id]:
                del self._watchers[watcher.run_id]
            if self._source is not None:
                self._source.interrupt()

    async def _read(self, run_id: str, after: int) -> Page:
        answer: asyncio.Future[Page | None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._source is None:
                self._source = self._make_source()
                threading.Thread(
                    target=self._run, args=[self._source], name="vel-tail", daemon=True
                ).start()
            self._requests[run_id, after].append(answer)
            self._source.interrupt()
        page = await answer
        if page is None:
            raise RunNotFound(f"There is no run {run_id!r}.")
        return page

    # The methods below run in the thread.

    def _run(self, source: EventSource) -> None:
        following: EventSource | None = source
        while following is not None:
            following = self._serve(following)

    def _serve(self, source: EventSource) -> EventSource | None:
        """Serve until there are no watchers, or until the connection is lost.

        Return a new source in the second case, else None.
        """
        try:
            return self._serve_open(source)
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            # No other thread can reach it any more: a closed source must not be interrupted.
            source.close()

    def _serve_open(self, source: EventSource) -> EventSource | None:
        try:
            source.open()
            # For commits during the time without a connection.
            self._wake(self._watched_runs())
            while not self._stop_if_unwatched():
                self._answer_requests(source)
                self._wake(source.wait(self._watched_runs()))
            return None
        except source.errors as error:
            log.warning("The event log cannot be followed; connecting again: %s", error)
            time.sleep(RECONNECT_SECONDS)
            with self._lock:
                self._source = self._make_source()
                return self._source

    def _stop_if_unwatched(self) -> bool:
        with self._lock:
            if self._watchers:
                return False
            # The remaining requests belong to watchers that were cancelled.
            self._requests.clear()
            self._source = None
            return True

    def _fail(self, error: BaseException) -> None:
        """Notify every watcher of an unexpected error in the thread."""
        with self._lock:
            self._source = None
            answers = [answer for waiting in self._requests.values() for answer in waiting]
            self._requests.clear()
        for answer in answers:
            _call_in(answer.get_loop(), _answer, answer, error)
        # Watchers without a request make one now, which starts a new thread.
        self._wake(self._watched_runs())

    def _watched_runs(self) -> list[str]:
        with self._lock:
            return list(self._watchers)

    def _answer_requests(self, source: EventSource) -> None:
        while True:
            with self._lock:
                request = next(iter(self._requests), None)
            if request is None:
                return
            # It is removed only after its answer: a lost connection leaves it for the next one.
            page = source.read_page(*request)
            with self._lock:
                answers = self._requests.pop(request)
            for answer in answers:
                _call_in(answer.get_loop(), _answer, answer, page)

    def _wake(self, run_ids: Iterable[str]) -> None:
        with self._lock:
            watchers = [watcher for run_id in run_ids for watcher in self._watchers.get(run_id, ())]
        for watcher in watchers:
            _call_in(watcher.loop, watcher.news.set)


def _call_in(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object
) -> None:
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _answer(answer: asyncio.Future[Page | None], outcome: Page | BaseException | None) -> None:
    if answer.done():
        return  # its watcher was cancelled
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def source_of_default_database() -> EventSource:
    """Return a source for Django's `default` database."""
    if connection.vendor == "sqlite":
        return SqliteSource(str(connection.settings_dict["NAME"]))
    if connection.vendor == "postgresql":
        parameters = connection.get_connection_params()
        # Options of Django's own cursors.
        return postgres.PostgresSource(
            {
                name: value
                for name, value in parameters.items()
                if name not in ("cursor_factory", "context", "prepare_threshold")
            }
        )
    raise ImproperlyConfigured(
        f"Vel cannot follow events in a {connection.vendor} database: use SQLite or PostgreSQL."
    )


tail = Tail(source_of_default_database)
"""The process's own tail."""
