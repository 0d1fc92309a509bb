"""Wait for input of a person, in a way that a signal always ends.

Python calls its signal handlers between two of its instructions, and when a signal interrupts a
system call of the main thread. If a signal arrives just before that system call, or in another
thread, Python would call the handler only after the next key.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from agents.doors.cli.errors import Signalled

AGAIN_SECONDS = 0.05
"""Interval in seconds to send a signal again, until the main thread has handled it."""


class _Prompt:
    """The signals that are handled while the main thread waits."""

    def __init__(self) -> None:
        self.main = threading.get_ident()
        self.is_open = True
        self.came: int | None = None
        """The first signal."""
        python = signal.getsignal(signal.SIGINT) == signal.default_int_handler
        self.numbers = [signal.SIGINT] if python else []
        self.numbers += [
            number
            for number in (signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) == signal.SIG_DFL
        ]

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal. Only the first one counts: later ones may be repetitions."""
        if self.came is not None:
            return
        self.came = number
        if self.is_open:
            raise self.error()

    def error(self) -> BaseException:
        assert self.came is not None
        return KeyboardInterrupt() if self.came == signal.SIGINT else Signalled(self.came)

    def send_again(self, bell: socket.socket) -> None:
        """Send received signals to the main thread, until Python has called the handler."""
        while numbers := bell.recv(4096):
            for number in set(numbers).intersection(self.numbers):
                while self.is_open and self.came is None:
                    signal.pthread_kill(self.main, number)
                    time.sleep(AGAIN_SECONDS)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let signals interrupt the main thread while it waits in this block.

    Ctrl-C raises `KeyboardInterrupt`, SIGTERM and SIGHUP raise `Signalled`, unless they are ignored
    or have another handler.
    """
    prompt = _Prompt()
    bell, ringer = socket.socketpair()
    ringer.setblocking(False)
    watcher = threading.Thread(target=prompt.send_again, args=(bell,), daemon=True)
    earlier = signal.set_wakeup_fd(ringer.fileno(), warn_on_full_buffer=False)
    before = {number: signal.getsignal(number) for number in prompt.numbers}
    raised = False
    try:
        watcher.start()
        for number in prompt.numbers:
            signal.signal(number, prompt.handle)
        yield
    except SystemError:
        # `input` lets Python call handlers while an exception is set.
        if prompt.came is None:
            raise
        raise prompt.error() from None
    except (KeyboardInterrupt, Signalled):
        raised = True
        raise
    finally:
        prompt.is_open = False
        signal.set_wakeup_fd(earlier)
        ringer.close()
        watcher.join()  # first: a signal from this thread would reach the earlier handler
        bell.close()
        for number, handler in before.items():
            signal.signal(number, handler)
        if prompt.came is not None and not raised:
            raise prompt.error()
