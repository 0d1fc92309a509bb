"""From the bytes of an event stream to JSON objects.

Our own, not the SDKs': building pydantic models for every event costs more CPU than all the rest
of a turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agents.providers.errors import endless, malformed

MAX_EVENT_BYTES = 16 * 1024**2
"""One event. Some servers repeat the whole reply in the last one."""
MAX_STREAM_BYTES = 256 * 1024**2
"""All events of a reply. The longest ones take some tens of megabytes, most of it names."""


class EventDecoder:
    """Server-sent events out of chunks that are cut anywhere.

    `end` is what a server may send in place of an event when it has no more; it yields nothing.
    """

    def __init__(self, end: bytes | None = None) -> None:
        self._rest = bytearray()
        self._received = 0
        self._end = end
        self.ended = False
        """Whether `end` has come."""

    def decode(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The JSON objects of all events that are complete by now.

        Raises `ProviderError` (malformed_stream) for an event that is not JSON, and for one or a
        stream that does not end.
        """
        seen = max(0, len(self._rest) - 3)
        self._rest += chunk
        self._received += len(chunk)
        if self._received > MAX_STREAM_BYTES:
            raise endless(f"it sent over {MAX_STREAM_BYTES:,} bytes for one reply")
        # Only what is new is looked at: an event may come in very many chunks.
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
