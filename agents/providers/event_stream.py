"""Convert the bytes of an event stream to JSON objects.

The SDKs would build pydantic models for every event, which takes more CPU than the rest of a turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agents.providers.errors import endless, malformed

MAX_EVENT_BYTES = 16 * 1024**2
"""Limit of one event. Some servers repeat the whole reply in the last one."""
MAX_STREAM_BYTES = 256 * 1024**2
"""Limit of all events of a reply.

Long replies take some tens of megabytes, most of it field names.
"""


class EventDecoder:
    """Server-sent events from chunks with any boundaries.

    `end` is the text that a server may send instead of a last event; it yields nothing.
    """

    def __init__(self, end: bytes | None = None) -> None:
        self._rest = bytearray()
        self._received = 0
        self._end = end
        self.ended = False
        """Whether `end` was received."""

    def decode(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of all events that are complete now.

        Raises `ProviderError` (malformed_stream) for an event that is not JSON, and for an event or
        a stream that is too long.
        """
        seen = max(0, len(self._rest) - 3)
        self._rest += chunk
        self._received += len(chunk)
        if self._received > MAX_STREAM_BYTES:
            raise endless(f"it sent over {MAX_STREAM_BYTES:,} bytes for one reply")
        # Only new bytes are searched, since an event can have very many chunks.
        if self._rest.find(b"\n\n", seen) < 0 and self._rest.find(b"\n\r\n", seen) < 0:
            if len(self._rest) > MAX_EVENT_BYTES:
                raise endless(f"one event has over {MAX_EVENT_BYTES:,} bytes")
            return
        *complete, rest = bytes(self._rest).replace(b"\r\n", b"\n").split(b"\n\n")
        self._rest = bytearray(rest)
        for event in complete:
            data = b"\n".join(line[5:] for line in event.split(b"\n") if line.startswith(b"data:"))
            if not data:
                continue
            if self._end is not None and data.strip() == self._end:
                self.ended = True
                return
            try:
                parsed = json.loads(data.decode())
            except (ValueError, RecursionError):
                raise malformed(f"an event is not JSON: {data[:120]!r}") from None
            if not isinstance(parsed, dict):
                raise malformed(f"an event is not an object: {data[:120]!r}")
            yield parsed
