"""Pools of connections and processes: few for each target, reused when clean, closed when idle."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar, cast

from agents.features.databases.drivers.errors import QueryFailed
from sandbox.cancellation import Cancellation

MAX_CONNECTIONS = 4
"""Of one target, in one process."""
IDLE_SECONDS = 60.0
_LOOK_EVERY = 5.0


class Session(Protocol):
    """What a pool needs to know of a connection."""

    @property
    def closed(self) -> bool: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


S = TypeVar("S", bound=Session)


class Pool(Generic[S]):
    """At most `size` connections; one that is not handed back clean is closed."""

    def __init__(
        self, connect: Callable[[], S], reset: Callable[[S], None],
        size: int = MAX_CONNECTIONS,
    ) -> None:  # fmt: skip
        self._connect = connect
        self._reset = reset
        self._size = size
        self._idle: list[tuple[float, S]] = []
        self._taken = 0
        self._retired = False
        self._free = threading.Condition()

    @contextmanager
    def connection(self, wait_seconds: float, cancel: Cancellation) -> Iterator[S]:
        """A clean connection. QueryFailed when none is free in time."""
        connection = self._take(wait_seconds, cancel)
        clean = False
        try:
            if connection is None:
                connection = self._connect()
            yield connection
            if not cancel.cancelled and not connection.closed:
                self._reset(connection)
                clean = True
        finally:
            # Where anything went wrong a late cancellation could still arrive: never reused.
            with self._free:
                self._taken -= 1
                kept = clean and connection is not None and not self._retired
                if kept and connection is not None:
                    self._idle.append((time.monotonic(), connection))
                self._free.notify()
            if connection is not None and not kept:
                connection.close()

    def _take(self, wait_seconds: float, cancel: Cancellation) -> S | None:
        def wake() -> None:
            with self._free:
                self._free.notify_all()

        forget = cancel.on_cancel(wake)
        try:
            with self._free:
                got = self._free.wait_for(
                    lambda: cancel.cancelled or self._taken < self._size, wait_seconds
                )
                if cancel.cancelled:
                    raise QueryFailed("The call was cancelled.", "cancelled")
                if not got:
                    raise QueryFailed(
                        "All connections to this database are in use: try again later.", "busy"
                    )
                self._taken += 1
                while self._idle:
                    _, connection = self._idle.pop()
                    if not connection.closed and not _has_something_to_say(connection):
                        return connection
                    connection.close()
                return None
        finally:
            forget()

    def close_idle(self, older_than: float) -> bool:
        """Close what has been idle for so many seconds; True when nothing is left at all."""
        before = time.monotonic() - older_than
        with self._free:
            old = [connection for since, connection in self._idle if since <= before]
            self._idle = [item for item in self._idle if item[0] > before]
            self._retired = not self._idle and not self._taken
        for connection in old:
            connection.close()
        return self._retired


def _has_something_to_say(connection: Session) -> bool:
    """Whether the server sent an idle session anything: mostly that it has ended it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


_pools: dict[tuple[str, ...], Pool[Any]] = {}
_lock = threading.Lock()
_closer: threading.Thread | None = None


def pool_for(key: tuple[str, ...], make: Callable[[], Pool[S]]) -> Pool[S]:
    """The pool of a target, made at first use. The key holds its URL, so the kind is the same."""
    global _closer
    with _lock:
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = make()
        if _closer is None:
            _closer = threading.Thread(target=_close_idle_pools, name="vel-databases", daemon=True)
            _closer.start()
        return cast("Pool[S]", pool)


def close_idle(older_than: float = IDLE_SECONDS) -> None:
    """Close what is idle, and forget pools that hold nothing."""
    with _lock:
        for key, pool in list(_pools.items()):
            if pool.close_idle(older_than):
                del _pools[key]


def _close_idle_pools() -> None:
    """The thread ends when there is nothing left to close; the next statement starts another."""
    global _closer
    while True:
        time.sleep(_LOOK_EVERY)
        close_idle()
        with _lock:
            if not _pools:
                _closer = None
                return


def _forget_after_fork() -> None:
    """Connections and threads are the parent's: a child must not touch them."""
    global _closer, _lock
    _lock = threading.Lock()
    _kept_open.extend(_pools.values())
    _pools.clear()
    _closer = None


_kept_open: list[Pool[Any]] = []
"""Never used: only so that a child does not end the parent's connections by collecting them."""

os.register_at_fork(after_in_child=_forget_after_fork)
