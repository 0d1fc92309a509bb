"""A server over streamable HTTP, through the check that sandboxes' connections go through.

A name is resolved once per connection, each of its addresses is checked, and one of these is
connected to: a name that changes its mind gains nothing. One origin is spoken to and no other,
answers have a limit, and no stream stays open beside a request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents.mcp.inbound import Flood, Inbound
from agents.mcp.limits import MAX_MESSAGE_BYTES
from agents.mcp.transport import HttpTarget, Streams

CONNECT_SECONDS = 10.0


class HttpTransport:
    """What is refused on the way stands in `problem`, too: the package tells less of it."""

    def __init__(self, target: HttpTarget) -> None:
        self.inbound = Inbound()
        self.problem = ""
        self._target = target

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        # With the package `mcp`: when there is a server.
        import anyio  # noqa: PLC0415
        import httpx2  # noqa: PLC0415
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        from agents.mcp.http_wire import CheckedTransport  # noqa: PLC0415

        client = httpx2.AsyncClient(
            transport=CheckedTransport(self._target, self._refused),
            headers={**self._target.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            follow_redirects=False,
            trust_env=False,
        )
        async with (
            client,
            streamable_http_client(
                self._target.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as (reading, writing),
        ):
            to_session, from_server = anyio.create_memory_object_stream[Any](16)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._pump, reading, to_session)
                try:
                    yield from_server, writing
                finally:
                    tasks.cancel_scope.cancel()
                    to_session.close()
                    from_server.close()

    async def _pump(self, reading: Any, to_session: Any) -> None:
        async with to_session:
            async for item in reading:
                try:
                    if isinstance(item, Exception):
                        self.inbound.unreadable += 1
                        self.inbound.count()
                    elif self.inbound.wanted(item.message):
                        await to_session.send(item)
                except Flood:
                    self.problem = "it sends messages without end"
                    return

    def _refused(self, reason: str) -> None:
        self.problem = self.problem or reason
