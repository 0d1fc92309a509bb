"""Handling of signals in a part of a command."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager


@asynccontextmanager
async def handling(numbers: Iterable[int], handle: Callable[[int], None]) -> AsyncIterator[None]:
    """Call `handle` in the running loop for these signals, until the block ends.

    A context manager, which then restores the earlier handlers. When it has ended, `handle` has
    been called for every signal that came before, also for one in the last moment.
    `loop.add_signal_handler` would lose that one, or give it to the next user of the loop.

    Afterwards, SIGINT has Python's own handler, unless the signal was ignored before: the handler
    of `asyncio.run` does not interrupt a prompt.
    """
    loop = asyncio.get_running_loop()
    came: list[int] = []

    def handle_all() -> None:
        while came:
            handle(came.pop(0))

    def woken() -> None:
        bell.recv(4096)
        handle_all()

    earlier = {number: signal.getsignal(number) for number in numbers}
    bell, ringer = socket.socketpair()
    with bell, ringer:
        ringer.setblocking(False)
        loop.add_reader(bell, woken)
        before = signal.set_wakeup_fd(ringer.fileno(), warn_on_full_buffer=False)
        try:
            for number in earlier:
                signal.signal(number, lambda number, frame: came.append(number))
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, _later(number, handler))
            signal.set_wakeup_fd(before)
            loop.remove_reader(bell)
    handle_all()


def _later(number: int, earlier: object) -> signal._HANDLER:
    """Return the handler that a signal gets when the block has ended."""
    if number == signal.SIGINT and earlier != signal.SIG_IGN:
        return signal.default_int_handler
    # None is a handler in C code, which Python cannot restore.
    return signal.SIG_DFL if earlier is None else earlier  # type: ignore[return-value]
