"""The interface of a connection's transport to its server.

It filters the messages of the server. Answers are passed on, and requests, which are then refused.

Notifications are dropped. A server that sends too many messages is disconnected.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.features.mcp_client.protocol.limits import MAX_MESSAGES
from sandbox.linux.egress.dialling import Destinations
from sandbox.linux.egress.hosts import Endpoint

LIST_CHANGED = "notifications/tools/list_changed"


class Flood(Exception):
    """The server sends too many messages."""


@dataclass
class Inbound:
    """Counts and filters messages. Used on one connection's loop only."""

    list_changed: bool = False
    unreadable: int = 0
    _count: int = field(default=0)

    def begin(self) -> None:
        """Reset the count for a request, since other messages may come with its answer."""
        self._count = 0

    def wanted(self, message: Any) -> bool:
        """Return whether to pass on `message`, of `mcp_types`. Raises `Flood`."""
        self.count()
        if hasattr(message, "method") and not hasattr(message, "id"):
            self.list_changed = self.list_changed or message.method == LIST_CHANGED
            return False
        return True

    def count(self) -> None:
        self._count += 1
        if self._count > MAX_MESSAGES:
            raise Flood


Streams = tuple[Any, Any]
"""Streams to read messages from and to write them to, as in sessions of the package `mcp`."""


@dataclass(frozen=True)
class HttpTarget:
    """The address of a server. `world` resolves its name and defines the allowed addresses."""

    url: str
    endpoint: Endpoint
    tls: Any
    """An `ssl.SSLContext`, or None for http."""
    world: Destinations
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Transport(Protocol):
    """A transport, opened once.

    `problem` has the reason if the server is gone, else it is empty.
    """

    inbound: Inbound
    problem: str

    def open(self) -> AbstractAsyncContextManager[Streams]:
        """Open it on the connection's loop. All of its work has ended when the block ends."""


Opened = AsyncIterator[Streams]
