"""Wait for input of a person, so that a signal always ends the wait.

Python calls its signal handlers between two of its own instructions, and when a signal interrupts
a system call of the main thread. A signal right before that system call, or one that the kernel
gives to another thread, does neither: Python would notice it at the next key.
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
"""How often a signal is sent again until the main thread has noticed it."""


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
        """Be a signal handler. Only the first signal counts: others may be the same, sent again."""
        if self.came is not None:
            return
        self.came = number
        if self.is_open:
            raise self.error()

    def error(self) -> BaseException:
        assert self.came is not None
        return KeyboardInterrupt() if self.came == signal.SIGINT else Signalled(self.came)

    def send_again(self, bell: socket.socket) -> None:
        """Send what has come to the main thread, until Python has called the handler there."""
        while numbers := bell.recv(4096):
            for number in set(numbers).intersection(self.numbers):
                while self.is_open and self.came is None:
                    signal.pthread_kill(self.main, number)
                    time.sleep(AGAIN_SECONDS)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let signals interrupt the main thread while it waits in this block.

    Ctrl-C raises `KeyboardInterrupt`, SIGTERM and SIGHUP raise `Signalled`, unless they are ignored
    or somebody else handles them.
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
        watcher.join()  # first: a signal that it sends would find the earlier handler
        bell.close()
        for number, handler in before.items():
            signal.signal(number, handler)
        if prompt.came is not None and not raised:
            raise prompt.error()
