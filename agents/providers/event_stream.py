"""From the bytes of an event stream to JSON objects.

Our own, not the SDKs': building pydantic models for every event costs more CPU than all the rest
of a turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agents.providers.errors import malformed


class EventDecoder:
    """Server-sent events out of chunks that are cut anywhere.

    `end` is what a server may send in place of an event when it has no more; it yields nothing.
    """

    def __init__(self, end: bytes | None = None) -> None:
        self._rest = b""
        self._end = end
        self.ended = False
        """Whether `end` has come."""

    def decode(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The JSON objects of all events that are complete by now.

        Raises `ProviderError` (malformed_stream) for an event that is not JSON.
        """
        self._rest += chunk
        if b"\r" in self._rest:
            self._rest = self._rest.replace(b"\r\n", b"\n")
        *complete, self._rest = self._rest.split(b"\n\n")
        for event in complete:
            data = b"\n".join(line[5:] for line in event.split(b"\n") if line.startswith(b"data:"))
            if not data:
                continue
            if self._end is not None and data.strip() == self._end:
                self.ended = True
                return
            try:
                parsed = json.loads(data.decode())
            except ValueError:
                raise malformed(f"an event is not JSON: {data[:120]!r}") from None
            if not isinstance(parsed, dict):
                raise malformed(f"an event is not an object: {data[:120]!r}")
            yield parsed
