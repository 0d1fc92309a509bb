"""Bounded capture of a stream: keeps the start and the end, and counts the bytes in between."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class CapturedStream:
    """The captured output of one stream, at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Cut rarely and much, so that many small pieces do not move the end of the text each time.
        if len(self._tail) > 2 * self._tail_limit + 65536:
            del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def cut(self) -> int:
        """The number of bytes that are omitted."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def text(self) -> str:
        """Return the output as UTF-8, with replacement characters for invalid bytes.

        A note marks the omitted part. The cut does not split a character.
        """
        if not self.cut:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        tail = self._tail[len(self._tail) - self._tail_limit :]
        start = 0
        while start < min(3, len(tail)) and tail[start] & 0xC0 == 0x80:
            start += 1
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        note = f"\n[... {self.cut:,} bytes of output cut here ...]\n"
        return head + note + bytes(tail[start:]).decode("utf-8", "replace")


class LiveOutput:
    """Forwards the text of several streams as it arrives, at most `limit` bytes of each."""

    def __init__(self, on_output: Callable[[str], None], limit: int) -> None:
        self._on_output = on_output
        self._limit = limit
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._room: dict[str, int] = {}

    def feed(self, stream: str, data: bytes) -> None:
        decoder = self._decoders.setdefault(
            stream, codecs.getincrementaldecoder("utf-8")("replace")
        )
        room = self._room.get(stream, self._limit)
        if room <= 0:
            return
        self._room[stream] = room - len(data)
        if text := decoder.decode(data[:room]):
            self._on_output(text)
        if room < len(data):
            self._on_output(f"\n[... more of {stream} is not shown live ...]\n")
