"""Queues and events between processes, any of which may be killed at any moment.

`multiprocessing.Queue` and `Event` use locks of the operating system. A process that is killed
while it holds one never releases it, and whoever waits for a message holds one: an idle worker that
is killed leaves a queue from which nobody can read again. Here no process holds anything: the
kernel passes each message, whole, to one receiver.
"""

from __future__ import annotations

import errno
import pickle
import socket
from multiprocessing.connection import wait
from typing import Any

BUFFER_BYTES = 256 * 1024
"""How much is asked for; the kernel may give less."""


class TooLarge(ValueError):
    """A message that is longer than the kernel passes on as one."""


class Queue:
    """What django-q2 uses of `multiprocessing.Queue`. Processes share it by a fork.

    A message is sent when `put` returns: nothing waits in the process that sends.
    """

    def __init__(self, maxsize: int = 0) -> None:
        # Datagrams, so that neither a killed sender nor a killed receiver leaves half a message.
        self._receiver, self._sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        self._receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._longest = self._sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    def put(self, message: Any) -> None:
        """Send a message; wait while the kernel's buffer is full. Raises `TooLarge`."""
        data = pickle.dumps(message)
        try:
            self._sender.send(data)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            raise TooLarge(f"A message of {len(data):,} bytes is too large.") from None

    def get(self) -> Any:
        """Wait for a message."""
        return pickle.loads(self._receiver.recv(self._longest))  # noqa: S301  # from a fork

    def empty(self) -> bool:
        """Whether there is no message that nobody has received."""
        return not wait([self._receiver], timeout=0)

    def qsize(self) -> int:
        """0, or 1 for any number of messages: the kernel does not count them."""
        return int(not self.empty())

    def close(self) -> None:
        """Do nothing: there is no thread that sends."""

    def join_thread(self) -> None:
        """Do nothing, likewise."""


class Event:
    """An event that is set once. Processes share it by a fork."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()

    def set(self) -> None:
        self._writer.send(b"1")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for so many seconds at most. Return whether it is set."""
        return bool(wait([self._reader], timeout))
