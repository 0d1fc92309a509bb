"""A Daphne server that waits for slow clients.

Daphne itself accepts all data of an application and keeps it in memory until the client reads. A
client that opens streams and never reads would fill the memory of the server. Here, sending waits
while too much data is buffered, so that a stream stops reading its events. If the client reads
nothing for a long time, the connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from daphne.server import Server  # first: it installs Twisted's reactor

# isort: split
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer  # type: ignore[import-untyped]

log = logging.getLogger(__name__)

STALLED_SECONDS = 60.0
"""A reader that takes nothing for this time is disconnected."""


@implementer(IPushProducer)
class Reader:
    """The state of a connection's buffer: paused above 64 KiB, until it is empty again."""

    def __init__(self) -> None:
        self._takes_more = asyncio.Event()
        self._takes_more.set()

    def pauseProducing(self) -> None:  # Twisted's name
        self._takes_more.clear()

    def resumeProducing(self) -> None:
        self._takes_more.set()

    def stopProducing(self) -> None:
        self._takes_more.set()  # closed: let a waiting sender notice it

    async def ready(self) -> bool:
        """Wait until the client accepts more data. Return False if the client reads nothing."""
        if self._takes_more.is_set():
            return True
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                await self._takes_more.wait()
        except TimeoutError:
            return False
        return True


class PatientServer(Server):
    """Server in which sending waits until the client has read the earlier data."""

    def __init__(
        self, *arguments: Any, on_first_answer: Callable[[], None] | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._on_first_answer = on_first_answer

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send like Daphne. After a part of a stream or a frame, wait for the client.

        A whole answer does not wait.
        """
        reader = self._reader_of(protocol, message)
        await super().handle_reply(protocol, message)
        if self._on_first_answer is not None:
            self._on_first_answer()
            self._on_first_answer = None
        if reader is not None and not await reader.ready():
            log.warning("a client has read nothing for %g s and is disconnected", STALLED_SECONDS)
            protocol.transport.abortConnection()

    def _reader_of(self, protocol: Any, message: dict[str, Any]) -> Reader | None:
        details = self.connections.get(protocol)
        if details is None or "disconnected" in details:
            return None
        if message["type"] == "http.response.body" and not message.get("more_body"):
            if details.pop("reader", None) is not None:
                protocol.unregisterProducer()
            return None
        if message["type"] not in ("http.response.body", "websocket.send"):
            return None
        found: Reader | None = details.get("reader")
        if found is None:
            found = details["reader"] = Reader()
            if message["type"] == "websocket.send":
                # The HTTP channel of the connection's first request is still in use.
                protocol.unregisterProducer()
            protocol.registerProducer(found, True)
        return found
