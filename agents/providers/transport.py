"""What the HTTP clients of all model APIs have in common. Both SDKs bring `httpx2`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from agents.providers.base import ProviderError
from agents.providers.errors import connection_lost, malformed, stalled

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 10.0
DRAIN_TIMEOUT = 2.0
"""Seconds in which a server has to end a response after its last event."""
MAX_BODY_BYTES = 4 * 1024**2
"""Of an answer that is no stream: an error, or what a server tells of its models."""
MAX_PACKED_BYTES = 256 * 1024
"""Of such an answer that is compressed: a thousand times as much may come out of it."""

NO_KEY = "no-key"
"""Sent to servers that need none: the SDKs refuse to send nothing."""


async def bounded(response: httpx2.Response) -> None:
    """For the `event_hooks` of a client: no answer fills the memory. Of streams of events
    `EventDecoder` counts the bytes itself, as they are read."""
    import httpx2  # noqa: PLC0415 -- loaded with the SDKs

    kind = response.headers.get("content-type", "")
    if response.status_code == 200 and kind.startswith("text/event-stream"):
        return
    is_packed = response.headers.get("content-encoding", "identity") != "identity"
    limit = MAX_PACKED_BYTES if is_packed else MAX_BODY_BYTES
    inner = cast("httpx2.AsyncByteStream", response.stream)

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = limit
            async for part in inner:
                left -= len(part)
                if left < 0:
                    raise httpx2.RemoteProtocolError(f"an answer of over {limit:,} bytes")
                yield part

        async def aclose(self) -> None:
            await inner.aclose()

    response.stream = Bounded()


def same_host(base_url: str, other: str) -> bool:
    """Whether two URLs name the same host."""
    return urlsplit(base_url).hostname == urlsplit(other).hostname


def host_of(base_url: str) -> str:
    """The host of a URL, with its port if it names one."""
    url = urlsplit(base_url)
    return f"{url.hostname}:{url.port}" if url.port else str(url.hostname)


async def drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the response, so that its connection serves the next request too."""
    import httpx2  # noqa: PLC0415 -- loaded with the SDKs

    try:
        async with asyncio.timeout(DRAIN_TIMEOUT):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx2.HTTPError):
        return  # the reply is whole; the connection is dropped


def no_end(response: httpx2.Response, end: str) -> str:
    """Why a response has no reply in it; `end` is the event that was missing."""
    kind = response.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        return f"it ended before {end}"
    return f"wanted text/event-stream, got {kind or 'no content type'}; is the base URL right?"


def transport_error(error: BaseException, base_url: str, stall_timeout: float) -> ProviderError:
    """The error for a connection that could not be made, broke, or fell silent."""
    import httpx2  # noqa: PLC0415 -- loaded with the SDKs

    if isinstance(error, httpx2.ReadTimeout):
        return stalled(stall_timeout)
    if isinstance(error, httpx2.DecodingError):
        return malformed(str(error))
    return connection_lost(host_of(base_url), str(error) or type(error).__name__)
