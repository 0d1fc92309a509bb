"""What a connection needs of the way to its server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from agents.mcp.inbound import Inbound

Streams = tuple[Any, Any]
"""To read messages from and to write them to, as the sessions of the package `mcp` take them."""


class Transport(Protocol):
    """Opened once. `problem` says why the server is gone; empty while it is there."""

    inbound: Inbound
    problem: str

    def open(self) -> AbstractAsyncContextManager[Streams]:
        """On the connection's loop. What it started has ended when the block does."""


Opened = AsyncIterator[Streams]
