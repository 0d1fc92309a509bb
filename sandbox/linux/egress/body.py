"""Pass on the body of a request exactly: no bytes after its end are passed on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from sandbox.linux.egress.wire import Wire

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[\t\x20-\x7e]*)?")
_LONGEST_LINE = 1024
_LONGEST_TRAILER = 16 * 1024


class BodyRefused(Exception):
    """A body that ends too early or has malformed chunks."""


async def body_of(source: Wire, length: int | None) -> AsyncIterator[bytes]:
    """Yield the pieces to send to the server. `length` None means chunks.

    Raises `BodyRefused`.
    """
    if length is not None:
        async for piece in _exactly(source, length):
            yield piece
        return
    while size := await _chunk_size(source):
        async for piece in _exactly(source, size):
            yield b"%x\r\n%s\r\n" % (len(piece), piece)
        if await source.receive_until(b"\r\n", 0) is None:
            raise BodyRefused("a chunk that is longer than its size")
    await _skip_trailer(source)
    yield b"0\r\n\r\n"


async def _exactly(source: Wire, count: int) -> AsyncIterator[bytes]:
    while count:
        piece = await source.receive(count)
        if not piece:
            raise BodyRefused("a body that ends early")
        count -= len(piece)
        yield piece


async def _chunk_size(source: Wire) -> int:
    line = await source.receive_until(b"\r\n", _LONGEST_LINE)
    match = _SIZE_LINE.fullmatch(line) if line is not None else None
    if match is None:
        raise BodyRefused("a chunk without a size")
    return int(match[1], 16)


async def _skip_trailer(source: Wire) -> None:
    left = _LONGEST_TRAILER
    while line := await source.receive_until(b"\r\n", _LONGEST_LINE):
        left -= len(line)
        if left < 0:
            raise BodyRefused("a trailer that is too long")
    if line is None:
        raise BodyRefused("a trailer that does not end")
