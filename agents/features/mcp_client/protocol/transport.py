"""The interface of a connection's transport to its server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.features.mcp_client.protocol.inbound import Inbound
from sandbox.linux.egress.destinations import Destinations
from sandbox.linux.egress.hosts import Endpoint

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
