"""A server over streamable HTTP, with the checks of sandboxes' connections.

A name is resolved once for each connection, and each of its addresses is checked before the
connection is made to one of them. Only one origin gets requests, answers have a limit, and no
stream stays open after a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpcore2
import httpx2
from mcp.client.streamable_http import streamable_http_client

from agents.features.mcp_client.protocol.limits import MAX_BODY_BYTES, MAX_MESSAGE_BYTES
from agents.features.mcp_client.protocol.transport import Flood, HttpTarget, Inbound, Streams
from sandbox.linux.egress.dialling import Destinations
from sandbox.linux.egress.hosts import Address, Endpoint

Refused = Callable[[str], None]
CONNECT_SECONDS = 10.0
MOST_ADDRESSES = 4


class HttpTransport:
    """The transport.

    `problem` also has the reason of a refusal, which the package does not report.
    """

    def __init__(self, target: HttpTarget) -> None:
        self.inbound = Inbound()
        self.problem = ""
        self._target = target

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
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


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to one origin. `refused` gets the reason of a refused request or answer."""

    def __init__(self, target: HttpTarget, refused: Refused) -> None:
        self._target = target
        self._refused = refused
        self._origin = _origin(httpx2.URL(target.url))
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=target.tls,
            max_connections=8,
            http1=True,
            http2=False,
            network_backend=CheckedBackend(target, refused),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            self._refused("it leads to another place, which is not followed")
            raise httpx2.ConnectError("another origin", request=request)
        if request.method == "GET":
            # Requests for the stream of unsolicited messages, and for resuming an interrupted
            # answer.
            return httpx2.Response(405, request=request)
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._pool.handle_async_request(sent)
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as why:
            self._refused(f"no connection ({type(why).__name__})")
            raise httpx2.ConnectError(str(why), request=request) from why
        response = httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Bounded(answer.stream, self._refused),
            extensions=answer.extensions,
        )
        if 300 <= answer.status < 400:
            self._refused("it leads to another place, which is not followed")
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            self._refused("it compresses its answer, which it was not asked for")
            raise httpx2.RemoteProtocolError("compressed", request=request)
        if answer.status in (401, 403):
            self._refused(f"it refuses its credentials (HTTP {answer.status})")
        return response

    async def aclose(self) -> None:
        await self._pool.aclose()


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to a checked address, also if the name resolves to another one later."""

    def __init__(self, target: HttpTarget, refused: Refused) -> None:
        self._target = target
        self._refused = refused
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # as in the interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        endpoint = self._target.endpoint
        problem: Exception = httpcore2.ConnectError("no address")
        try:
            addresses = await checked_addresses(endpoint, self._target.world)
        except OSError as error:
            self._refused(str(error))
            raise httpcore2.ConnectError(str(error)) from error
        for address in addresses:
            try:
                return await self._backend.connect_tcp(str(address), endpoint.port, timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, refused: Refused) -> None:
        self._stream = stream
        self._refused = refused

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BODY_BYTES
        async for part in self._stream:
            left -= len(part)
            if left < 0:
                self._refused(too_large())
                raise httpx2.RemoteProtocolError(too_large())
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def checked_addresses(endpoint: Endpoint, world: Destinations) -> list[Address]:
    """Return the first `MOST_ADDRESSES` addresses of the endpoint.

    Raises `OSError` if any of its addresses is not allowed, or there is none.
    """
    if endpoint.address is not None:
        addresses = [endpoint.address]
    else:
        addresses = await asyncio.to_thread(world.resolve, endpoint.host)
    for address in addresses:
        refusal = world.refusal(address)
        if refusal is not None:
            raise PermissionError(refusal)
    if not addresses:
        raise OSError("its name has no address")
    return addresses[:MOST_ADDRESSES]


def too_large() -> str:
    return f"it sent an answer of over {MAX_BODY_BYTES:,} bytes"
