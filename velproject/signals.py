"""Signals that a command handles for a while."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def handling(numbers: Iterable[int], handle: Callable[[int], None]) -> Iterator[None]:
    """Call `handle` in the running loop for these signals, then restore the earlier handlers.

    asyncio does not restore them: it sets Python's default handlers, also for a signal that was
    ignored. SIGINT gets Python's own handler even so, unless it was ignored: that of `asyncio.run`
    does not interrupt a prompt.
    """
    loop = asyncio.get_running_loop()
    earlier = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in earlier:
            loop.add_signal_handler(number, handle, number)
        yield
    finally:
        for number, handler in earlier.items():
            loop.remove_signal_handler(number)
            if handler is None:  # a handler of C code
                continue
            if number != signal.SIGINT or handler == signal.SIG_IGN:
                signal.signal(number, handler)
