"""Common parts of the HTTP clients of all model APIs. All SDKs use `httpx2`."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from typing import cast

import httpx2

from agents.providers.addresses import host_of
from agents.providers.base import ProviderError
from agents.providers.errors import connection_lost, malformed, stalled

CONNECT_TIMEOUT = 10.0
DRAIN_TIMEOUT = 2.0
"""Seconds for a server to end a response after its last event."""
MAX_BODY_BYTES = 4 * 1024**2
"""Limit of an answer that is no stream: an error, or the list of models."""
MAX_PACKED_BYTES = 256 * 1024
"""Limit of such an answer if it is compressed: its content may be a thousand times larger."""

NO_KEY = "no-key"
"""Sent to servers without keys, since the SDKs require one."""


_shared: tuple[object, ssl.SSLContext] | None = None
"""The state of the certificates that `tls_context` has read, and its context."""


def tls_context() -> ssl.SSLContext:
    """Return the context that verifies servers, for the argument `verify` of a client.

    Reading a file of all certificates takes 20 ms, so all clients share one context until the
    certificates of this host change.
    """
    global _shared
    state = _certificates()
    if state is None:  # the context reads a directory only when necessary
        return httpx2.create_ssl_context()
    shared = _shared
    if shared is None or shared[0] != state:
        _shared = shared = (state, httpx2.create_ssl_context())
    return shared[1]


def _certificates() -> object:
    """Return a value that changes with the certificates; None if they are not in a known file.

    The file and the directory are those of `httpx2`.
    """
    default = ssl.get_default_verify_paths()
    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file:
        if directory:
            return None
        file, directory = default.openssl_cafile, default.openssl_capath
    states = [_state(path) for path in (file, directory)]
    return (file, directory, *states) if states[0] else None


def _state(path: str | None) -> tuple[int, ...] | None:
    try:
        found = os.stat(path or "")
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


async def bounded(response: httpx2.Response) -> None:
    """Limit the size of an answer. For the `event_hooks` of a client.

    Reading more raises `RemoteProtocolError`. `EventDecoder` limits streams of events itself, while
    they are read.
    """
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


async def drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the response, so that its connection serves the next request too."""
    try:
        async with asyncio.timeout(DRAIN_TIMEOUT):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx2.HTTPError):
        return  # the reply is complete; the connection is dropped


def no_end(response: httpx2.Response, end: str) -> str:
    """Return why a response has no reply; `end` is the missing event."""
    kind = response.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        return f"it ended before {end}"
    return f"wanted text/event-stream, got {kind or 'no content type'}; is the base URL right?"


def transport_error(error: BaseException, base_url: str, stall_timeout: float) -> ProviderError:
    """Return the error for a connection that failed, was lost, or became silent."""
    if isinstance(error, httpx2.ReadTimeout):
        return stalled(stall_timeout)
    if isinstance(error, httpx2.DecodingError):
        return malformed(str(error))
    return connection_lost(host_of(base_url), str(error) or type(error).__name__)
