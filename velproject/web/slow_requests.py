"""Time limits for requests: no client can keep a connection without sending a whole request.

Twisted closes a connection that is silent for a minute. A client that sends a byte now and then
would keep the connection, with its memory, its descriptor and the file for its body, without a
sign-in. Here, a request must arrive in a time that grows with its size. If too many connections are
open, the one that has waited longest for a request is closed. Responses (streams, sockets) may
last: `velproject.web.server` watches slow readers.
"""

from __future__ import annotations

import logging
import math
import resource
import time
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import daphne.server  # first: it installs Twisted's reactor

# isort: split
from daphne.http_protocol import HTTPFactory
from twisted.internet.protocol import connectionDone
from twisted.internet.task import LoopingCall
from twisted.web.http import HTTPChannel

from velproject.web.body_limit import LimitedRequest
from velproject.web.response_headers import bare_answer

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
WARN_SECONDS = 60.0
OTHER_FILES = 256
"""Descriptors for all other purposes."""


@dataclass(frozen=True)
class Patience:
    """Time limits of a connection in seconds, and the number of connections."""

    idle: float = 60.0
    """The most seconds without a received byte, before or within a request."""
    head: float = 30.0
    """The most seconds from the first byte of a request to the end of its headers."""
    body: float = 60.0
    """The most seconds that a body may be behind `bytes_per_second`. Time ahead is not saved."""
    bytes_per_second: float = 8_000.0
    """The slowest rate of a body: 64 kbit/s."""
    closing: float = 600.0
    """The most seconds for reading the rest of the last response."""
    connections: int = 2_000


def limit_requests(patience: Patience) -> None:
    """Apply `patience` and `body_limit` to all servers that this process starts from now on."""
    daphne.server.HTTPFactory = partial(LimitedFactory, patience=patience)


class TimedChannel(HTTPChannel):
    """One connection while it uses HTTP. Names in camelCase are Twisted's."""

    factory: LimitedFactory
    transport: Any
    in_body = False
    is_closing = False
    deadline = math.inf
    """Monotonic time in seconds; infinite before the first and after the last byte of a request."""

    def connectionMade(self) -> None:
        super().connectionMade()
        self.factory.add(self)

    def dataReceived(self, data: bytes) -> None:
        now, patience = time.monotonic(), self.factory.patience
        if self.in_body:
            earned = len(data) / patience.bytes_per_second
            self.deadline = min(self.deadline + earned, now + patience.body)
        elif self.deadline == math.inf and self in self.factory.waiting:
            self.deadline = now + patience.head
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        if not self.is_closing:
            self.in_body = True
            self.deadline = time.monotonic() + self.factory.patience.body
        super().allHeadersReceived()

    def allContentReceived(self) -> None:
        if not self.is_closing:
            # Not limited until the answer has ended, and never again if it becomes a websocket.
            self.in_body, self.deadline = False, math.inf
            self.factory.waiting.pop(self, None)
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:
        self.factory.waiting[self] = None
        super().requestDone(request)

    def loseConnection(self) -> None:
        if not self.is_closing:
            self.is_closing, self.in_body = True, False
            self.deadline = time.monotonic() + self.factory.patience.closing
            self.factory.waiting[self] = None
        super().loseConnection()

    def connectionLost(self, reason: Any = connectionDone) -> None:
        self.factory.remove(self)
        super().connectionLost(reason)

    def cut(self) -> None:
        """Close the connection. If a part of a request has arrived, send an error (408) first."""
        if self.is_closing:
            self.transport.abortConnection()
            return
        if self.deadline < math.inf:
            self.transport.write(bare_answer(HTTPStatus.REQUEST_TIMEOUT))
        self.timeoutConnection()

    def _respondToBadRequestAndDisconnect(self) -> None:
        # Twisted's own answer has no security headers.
        self.transport.write(bare_answer(HTTPStatus.BAD_REQUEST))
        self.loseConnection()


class LimitedFactory(HTTPFactory):
    """All connections of one server."""

    protocol = TimedChannel

    def __init__(self, server: Any, *, patience: Patience) -> None:
        super().__init__(server)
        self.patience = patience
        self.timeOut = patience.idle
        self.waiting: dict[TimedChannel, None] = {}
        """Those without a whole request, in the order in which this state started."""
        self._open: set[Any] = set()
        """Transports; closed websockets are removed when room is needed."""
        self._look = LoopingCall(self._cut_late)
        self._warned = -math.inf

    def startFactory(self) -> None:  # Twisted's name
        super().startFactory()
        self._look.start(LOOK_SECONDS)

    def stopFactory(self) -> None:  # Twisted's name
        self._look.stop()
        super().stopFactory()

    def buildProtocol(self, addr: Any) -> Any:  # Twisted's name
        if not self._has_room():
            return None  # closed immediately
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = LimitedRequest
        return protocol

    def add(self, channel: TimedChannel) -> None:
        self._open.add(channel.transport)
        self.waiting[channel] = None

    def remove(self, channel: TimedChannel) -> None:
        self._open.discard(channel.transport)
        self.waiting.pop(channel, None)

    def _has_room(self) -> bool:
        """Return whether there is room for a connection.

        If necessary, closes the connection that has waited longest for a request.
        """
        if len(self._open) < self.patience.connections:
            return True
        self._open = {transport for transport in self._open if transport.connected}
        if len(self._open) < self.patience.connections:
            return True
        now = time.monotonic()
        if now - self._warned > WARN_SECONDS:
            self._warned = now
            logger.warning(
                "%d connections are open, the most that are allowed (VEL_CONNECTIONS): "
                "those without a request are closed to make room",
                len(self._open),
            )
        oldest = next(iter(self.waiting), None)
        if oldest is None:
            return False
        del self.waiting[oldest]  # connections that are closing are added again, at the end
        oldest.cut()
        return True

    def _cut_late(self) -> None:
        now = time.monotonic()
        for channel in [channel for channel in self.waiting if channel.deadline < now]:
            try:
                channel.cut()
            except Exception:  # a connection that cannot be closed must not protect the others
                logger.exception("a connection that is too slow could not be closed")
                self.waiting.pop(channel, None)


def connections_possible(wanted: int) -> int:
    """Raise this process's limit of open files. Return how many connections are possible.

    `wanted` is the number of connections to make possible. A connection may also need a file, for
    the body of its request.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * wanted + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    soft = needed if hard == resource.RLIM_INFINITY else max(soft, min(needed, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    possible = min(wanted, max(1, (soft - OTHER_FILES) // 2))
    if possible < wanted:
        logger.warning(
            "this process can open %d files, which is enough for %d connections but not for %d "
            "(VEL_CONNECTIONS): raise the limit of open files (ulimit -n, LimitNOFILE)",
            soft,
            possible,
            wanted,
        )
    return possible
