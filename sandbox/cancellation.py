"""A switch that one thread throws to stop what other threads are waiting for."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Cancellation:
    """Thread-safe and one-way: once cancelled it stays so.

    Callbacks run in the thread that calls `cancel`, or at once when it is cancelled already.
    They must be quick and must not raise.
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
        """Call `callback` when cancelled; returns a function that takes the callback back."""
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
