"""The HTTP client's own parts: imported with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpcore2
import httpx2

from agents.mcp.limits import MAX_BODY_BYTES
from agents.mcp.transport import HttpTarget
from sandbox.egress.destinations import Destinations
from sandbox.egress.hosts import Address, Endpoint

Refused = Callable[[str], None]
MOST_ADDRESSES = 4


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Speaks to one origin. `refused` is told why a request was not made, or an answer dropped."""

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
            # The stream for what nobody asked for, and for going on with a broken answer.
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
    """Connects to an address that was checked, whatever the name says a moment later."""

    def __init__(self, target: HttpTarget, refused: Refused) -> None:
        self._target = target
        self._refused = refused
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the interface's
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
    """The addresses that may be connected to. Raises `OSError` if one of them may not."""
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
