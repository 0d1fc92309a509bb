"""Pools of connections and processes: a few for each target, reused if clean, closed if idle."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar, cast

from agents.features.databases.drivers.errors import QueryFailed
from sandbox.cancellation import Cancellation

MAX_CONNECTIONS = 4
"""Limit for one target in one process."""
IDLE_SECONDS = 60.0
_LOOK_EVERY = 5.0


class Session(Protocol):
    """The interface of a connection for a pool."""

    @property
    def closed(self) -> bool: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


S = TypeVar("S", bound=Session)


class Pool(Generic[S]):
    """A pool of at most `size` connections. A connection that is not clean is closed."""

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
        """Yield a clean connection.

        Raises QueryFailed if none is free within `wait_seconds`, or the call is cancelled.
        """
        connection = self._take(wait_seconds, cancel)
        clean = False
        try:
            if connection is None:
                connection = self._connect()
            yield connection
            if not cancel.cancelled and not connection.closed:
                with suppress(Exception):  # it is closed; the work is done, and may be committed
                    self._reset(connection)
                    clean = True
        finally:
            # After an error, a late cancellation could still arrive, so the connection is not
            # reused.
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
        """Close connections that are idle for `older_than` seconds.

        Return whether the pool is empty then.
        """
        before = time.monotonic() - older_than
        with self._free:
            old = [connection for since, connection in self._idle if since <= before]
            self._idle = [item for item in self._idle if item[0] > before]
            self._retired = not self._idle and not self._taken
        for connection in old:
            connection.close()
        return self._retired


def _has_something_to_say(connection: Session) -> bool:
    """Return whether an idle session has unread data: usually the server has closed it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


_pools: dict[tuple[str, ...], Pool[Any]] = {}
_lock = threading.Lock()
_closer: threading.Thread | None = None


def pool_for(key: tuple[str, ...], make: Callable[[], Pool[S]]) -> Pool[S]:
    """Return the pool of a target. `make` creates it at its first use. The key contains the URL."""
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
    """Close connections that are idle for `older_than` seconds, and remove empty pools."""
    with _lock:
        for key, pool in list(_pools.items()):
            if pool.close_idle(older_than):
                del _pools[key]


def _close_idle_pools() -> None:
    """Close idle connections until all pools are empty. The next statement starts a new thread."""
    global _closer
    while True:
        time.sleep(_LOOK_EVERY)
        close_idle()
        with _lock:
            if not _pools:
                _closer = None
                return


def _forget_after_fork() -> None:
    """Drop the pools in a child process: connections and threads belong to the parent."""
    global _closer, _lock
    _lock = threading.Lock()
    _kept_open.extend(_pools.values())
    _pools.clear()
    _closer = None


_kept_open: list[Pool[Any]] = []
"""Not used. References keep a child's garbage collector from closing the parent's connections."""

os.register_at_fork(after_in_child=_forget_after_fork)
