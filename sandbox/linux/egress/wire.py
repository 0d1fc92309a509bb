"""A socket with a buffer for data that was read too early, and the bytes a command may use."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

_CHUNK = 64 * 1024


class AllowanceSpent(Exception):
    """Raised if the command has used all bytes that it may send and receive."""


@dataclass(slots=True)
class Allowance:
    """The number of bytes that one command may still send and receive."""

    left: int

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise AllowanceSpent


class Wire:
    """A non-blocking socket. Call its methods only in the event loop that created it."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._loop = asyncio.get_running_loop()
        self._early = bytearray()

    async def receive(self, most: int = _CHUNK) -> bytes:
        """Return at least one byte, or no bytes at the end of the stream."""
        return self._take(most) or await self._loop.sock_recv(self.socket, min(most, _CHUNK))

    async def receive_until(self, end: bytes, most: int) -> bytes | None:
        """Return all bytes before `end`; None if the first `most` bytes do not contain `end`.

        Also returns None if the stream ends first.
        """
        searched = 0
        while (found := self._early.find(end, searched)) < 0:
            searched = max(0, len(self._early) - len(end) + 1)
            if searched > most:
                return None
            more = await self._loop.sock_recv(self.socket, _CHUNK)
            if not more:
                return None
            self._early += more
        data = self._take(found + len(end))[:found]
        return data if found <= most else None

    def _take(self, most: int) -> bytes:
        data = bytes(self._early[:most])
        del self._early[:most]  # at the start of a bytearray, this copies nothing
        return data

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.socket, data)

    def end_sending(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side has already closed the connection

    @property
    def is_untouched(self) -> bool:
        return not self._early


_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[\t\x20-\x7e]*)?")
_LONGEST_LINE = 1024
_LONGEST_TRAILER = 16 * 1024


class BodyRefused(Exception):
    """Raised for a body that ends too early or has malformed chunks."""


async def body_of(source: Wire, length: int | None) -> AsyncIterator[bytes]:
    """Yield the parts of a request's body to send to the server.

    `length` is in bytes; None means chunks. Raises `BodyRefused`.
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
