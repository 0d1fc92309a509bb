"""No connection is held by somebody who has sent no whole request, however slowly bytes come.

Twisted closes a connection that is silent for a minute. A byte now and then kept one open for ever,
with its memory, its descriptor and the file that its body is put in, before anybody had signed in.
Here a request must arrive in a time that grows with what has come, and where too many connections
are open the one that has waited longest for a request makes room. What is sent to the client
(streams, sockets) may last: `web_server` looks after readers.
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
"""Descriptors for all that is no connection."""


@dataclass(frozen=True)
class Patience:
    """How long a connection may take for what, in seconds, and how many there may be."""

    idle: float = 60.0
    """Without a byte, before a request and within one."""
    head: float = 30.0
    """From the first byte of a request to the end of its headers."""
    body: float = 60.0
    """By how much a body may be behind `bytes_per_second`; being ahead is not saved up."""
    bytes_per_second: float = 8_000.0
    """64 kbit/s."""
    closing: float = 600.0
    """To take the rest of the last answer."""
    connections: int = 2_000


def limit_requests(patience: Patience) -> None:
    """Let servers that start from now on in this process keep to `patience` and `body_limit`."""
    daphne.server.HTTPFactory = partial(LimitedFactory, patience=patience)


class TimedChannel(HTTPChannel):
    """One connection, as long as it speaks HTTP. Names in camelCase are Twisted's."""

    factory: LimitedFactory
    transport: Any
    in_body = False
    is_closing = False
    deadline = math.inf
    """On the monotonic clock. Infinite while nothing of a request has come, or all of it."""

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
            # Not looked at until its answer has ended, and never again if it becomes a websocket.
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
        """Hang up; with an answer where one is waited for."""
        if self.is_closing:
            self.transport.abortConnection()
            return
        if self.deadline < math.inf:
            self.transport.write(bare_answer(HTTPStatus.REQUEST_TIMEOUT))
        self.timeoutConnection()

    def _respondToBadRequestAndDisconnect(self) -> None:
        # Twisted's own answer has no headers.
        self.transport.write(bare_answer(HTTPStatus.BAD_REQUEST))
        self.loseConnection()


class LimitedFactory(HTTPFactory):
    """All connections of a server."""

    protocol = TimedChannel

    def __init__(self, server: Any, *, patience: Patience) -> None:
        super().__init__(server)
        self.patience = patience
        self.timeOut = patience.idle
        self.waiting: dict[TimedChannel, None] = {}
        """Those without a whole request, by how long they have been so."""
        self._open: set[Any] = set()
        """Transports; those of websockets that have ended are found when they matter."""
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
            return None  # closed at once
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
        """Make it, if need be, by closing who has waited longest."""
        if len(self._open) < self.patience.connections:
            return True
        self._open = {transport for transport in self._open if transport.connected}
        if len(self._open) < self.patience.connections:
            return True
        now = time.monotonic()
        if now - self._warned > WARN_SECONDS:
            self._warned = now
            logger.warning(
                "%d connections are open, as many as may be (VEL_CONNECTIONS): "
                "those without a request are closed to make room",
                len(self._open),
            )
        oldest = next(iter(self.waiting), None)
        if oldest is None:
            return False
        del self.waiting[oldest]  # comes back as one that closes, at the end
        oldest.cut()
        return True

    def _cut_late(self) -> None:
        now = time.monotonic()
        for channel in [channel for channel in self.waiting if channel.deadline < now]:
            try:
                channel.cut()
            except Exception:  # one that cannot be cut must not keep the others from it
                logger.exception("a connection that is too slow could not be closed")
                self.waiting.pop(channel, None)


def connections_possible(wanted: int) -> int:
    """Raise this process's limit of open files for them, and say how many it then has room for.

    A connection may hold a file too, with the body of its request.
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
            "this process may open %d files, which is room for %d connections and not for %d "
            "(VEL_CONNECTIONS): raise the limit of open files (ulimit -n, LimitNOFILE)",
            soft,
            possible,
            wanted,
        )
    return possible
