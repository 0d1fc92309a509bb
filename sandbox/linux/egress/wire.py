"""A socket with a buffer for data that was read too early, and a count of its bytes."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

_CHUNK = 64 * 1024


class AllowanceSpent(Exception):
    """The command has used all bytes that one command may send and receive."""


@dataclass(slots=True)
class Allowance:
    """The number of bytes that one command may still send and receive."""

    left: int

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise AllowanceSpent


class Wire:
    """Non-blocking. All methods must run in the event loop in which it was created."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._loop = asyncio.get_running_loop()
        self._early = bytearray()

    async def receive(self, most: int = _CHUNK) -> bytes:
        """Return at least one byte, or no bytes at the end of the stream."""
        return self._take(most) or await self._loop.sock_recv(self.socket, min(most, _CHUNK))

    async def receive_until(self, end: bytes, most: int) -> bytes | None:
        """Return all bytes before `end`, or None if it is not within `most` bytes or the stream."""
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
            pass  # the other side has already closed

    @property
    def is_untouched(self) -> bool:
        return not self._early
