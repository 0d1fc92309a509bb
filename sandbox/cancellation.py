"""Cancellation: one thread stops the waiting of other threads."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Cancellation:
    """A thread-safe signal to stop, which cannot be reset.

    Callbacks run in the thread that calls `cancel`, or immediately if it was called before. They
    must be quick and must not raise.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` at cancellation. Return a function that removes the callback."""
        key = object()
        with self._lock:
            already = self._cancelled
            if not already:
                self._callbacks[key] = callback
        if already:
            callback()

        def forget() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return forget
