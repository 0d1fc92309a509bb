"""Stop a statement on a server when its call is cancelled or its time is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation

CANCEL_SECONDS = 5.0
"""Seconds for the server to stop the statement, before the connection is shut down."""
_LATER = 1.0
"""Seconds for the server's own timeout, before Vel cancels."""


@contextmanager
def ended_in_time(
    target: DatabaseTarget, cancel: Cancellation, ask: Callable[[], None], cut: Callable[[], None]
) -> Iterator[None]:
    """Stop the statement inside when the call is cancelled or the time is over.

    `ask` requests it from the server and may take a while; if that fails, `cut` shuts down the
    connection. Raises QueryFailed if the time was over.
    """
    ended, late = threading.Event(), threading.Event()
    using = threading.Lock()

    def stop() -> None:
        ask()
        if not ended.wait(CANCEL_SECONDS):
            with using:
                if not ended.is_set():
                    cut()

    def stop_aside() -> None:
        # In a thread, since cancelling makes network requests and the engine's loop calls this.
        threading.Thread(target=stop, name="vel-cancel", daemon=True).start()

    def time_is_over() -> None:
        with using:
            if ended.is_set():
                return  # the next statement on the connection must not be stopped
            late.set()
        stop()

    timer = threading.Timer(target.statement_seconds + _LATER, time_is_over)
    timer.daemon = True
    forget = cancel.on_cancel(stop_aside)
    timer.start()
    try:
        try:
            yield
        finally:
            timer.cancel()
            forget()
            with using:
                ended.set()
        if late.is_set():
            raise QueryFailed(
                f"The statement took longer than {target.statement_seconds:g} s.", "timeout"
            )
    except QueryFailed:
        raise
    except Exception as problem:
        if late.is_set():
            # For example a connection that was shut down.
            raise QueryFailed(f"The statement was stopped: {problem}", "timeout") from None
        raise
