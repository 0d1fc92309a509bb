"""What a connection needs of the way to its server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.features.mcp_client.protocol.inbound import Inbound
from sandbox.linux.egress.destinations import Destinations
from sandbox.linux.egress.hosts import Endpoint

Streams = tuple[Any, Any]
"""To read messages from and to write them to, as the sessions of the package `mcp` take them."""


@dataclass(frozen=True)
class HttpTarget:
    """Where a server is. `world` resolves its name and says which addresses are allowed."""

    url: str
    endpoint: Endpoint
    tls: Any
    """An `ssl.SSLContext`, or None for http."""
    world: Destinations
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Transport(Protocol):
    """Opened once. `problem` says why the server is gone; empty while it is there."""

    inbound: Inbound
    problem: str

    def open(self) -> AbstractAsyncContextManager[Streams]:
        """On the connection's loop. What it started has ended when the block does."""


Opened = AsyncIterator[Streams]
