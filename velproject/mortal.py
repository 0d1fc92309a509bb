"""Queues and events between processes of which any may be killed at any moment.

`multiprocessing.Queue` and `Event` use locks of the operating system, and a killed process never
releases its lock. A process holds the lock of a queue while it waits for a message. Therefore, a
killed idle worker leaves a queue that nobody can read again. The classes here use no locks: the
kernel delivers each message to one receiver.
"""

from __future__ import annotations

import errno
import pickle
import socket
from multiprocessing.connection import wait
from typing import Any

BUFFER_BYTES = 256 * 1024
"""The requested size; the kernel may use a smaller one."""


class TooLarge(ValueError):
    """Raised if a message is longer than the largest datagram."""


class Queue:
    """A queue with the methods of `multiprocessing.Queue` that django-q2 uses.

    Forked processes share the queue. `put` sends the message before it returns. `maxsize` is
    ignored.
    """

    def __init__(self, maxsize: int = 0) -> None:
        # A datagram is sent and received as a whole, even if a process is killed meanwhile.
        self._receiver, self._sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        self._receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._longest = self._sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    def put(self, message: Any) -> None:
        """Send a message, and wait if the kernel's buffer is full. Raises `TooLarge`."""
        data = pickle.dumps(message)
        try:
            self._sender.send(data)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            raise TooLarge(f"A message of {len(data):,} bytes is too large.") from None

    def get(self) -> Any:
        """Wait for a message, and return it."""
        return pickle.loads(self._receiver.recv(self._longest))  # noqa: S301  # from a fork

    def empty(self) -> bool:
        """Return whether the queue is empty."""
        return not wait([self._receiver], timeout=0)

    def qsize(self) -> int:
        """Return 0 for an empty queue, and 1 otherwise: the kernel does not count messages."""
        return int(not self.empty())

    def close(self) -> None:
        """Do nothing, because this queue has no thread."""

    def join_thread(self) -> None:
        """Do nothing, because this queue has no thread."""


class Event:
    """An event that can be set and never cleared. Forked processes share it."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()

    def set(self) -> None:
        self._writer.send(b"1")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds until the event is set. Return whether it is set."""
        return bool(wait([self._reader], timeout))
