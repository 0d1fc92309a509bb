"""A socket with what was read from it too early, and the count of what went over it."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

_CHUNK = 64 * 1024


class AllowanceSpent(Exception):
    """The command has sent and received all that one command may."""


@dataclass(slots=True)
class Allowance:
    """Bytes that one command may still send and receive."""

    left: int

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise AllowanceSpent


class Wire:
    """Non-blocking; all methods are for the loop that it was made in."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._loop = asyncio.get_running_loop()
        self._early = bytearray()

    async def receive(self, most: int = _CHUNK) -> bytes:
        """At least one byte; none at the end of the stream."""
        return self._take(most) or await self._loop.sock_recv(self.socket, min(most, _CHUNK))

    async def receive_until(self, end: bytes, most: int) -> bytes | None:
        """All up to `end`, without it; None when the stream ended or `most` bytes held none."""
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
        del self._early[:most]  # at the front of a bytearray this copies nothing
        return data

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.socket, data)

    def end_sending(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side is gone already

    @property
    def is_untouched(self) -> bool:
        return not self._early
