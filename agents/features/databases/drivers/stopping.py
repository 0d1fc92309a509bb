"""Ending a statement on a server when its call is cancelled or its time is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation

CANCEL_SECONDS = 5.0
"""What the server is given to do as it was asked to, before the connection is cut."""
_LATER = 1.0
"""Seconds that the server's own time-out is given before Vel cancels."""


@contextmanager
def ended_in_time(
    target: DatabaseTarget, cancel: Cancellation, ask: Callable[[], None], cut: Callable[[], None]
) -> Iterator[None]:
    """Have what runs within it ended when the call is cancelled or the time is over.

    `ask` tells the server so, from aside, and may take a while; if that does not help, `cut` ends
    the connection. Raises QueryFailed if the time was over.
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
        # Cancelling talks to the server: not in the engine's loop, which calls this.
        threading.Thread(target=stop, name="vel-cancel", daemon=True).start()

    def time_is_over() -> None:
        late.set()
        stop()

    timer = threading.Timer(target.statement_seconds + _LATER, time_is_over)
    timer.daemon = True
    forget = cancel.on_cancel(stop_aside)
    timer.start()
    try:
        yield
        if late.is_set():
            raise QueryFailed(
                f"The statement took longer than {target.statement_seconds:g} s.", "timeout"
            )
    except QueryFailed:
        raise
    except Exception as problem:
        if late.is_set():
            # Such as a connection that was cut.
            raise QueryFailed(f"The statement was stopped: {problem}", "timeout") from None
        raise
    finally:
        timer.cancel()
        forget()
        with using:
            ended.set()
