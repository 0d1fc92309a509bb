"""Messages between a worker and a helper process: JSON behind its length, over two pipes.

Unlike `pickle`, reading JSON runs no code. A reader limits the length of a message.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any
from uuid import UUID

from agents.features.databases.drivers.table import Pairs

_HEAD = 4
_CHUNK = 1 << 20
_TYPE, _TEXT = "\0type", "\0text"

# Values of parameters and rows that JSON does not have.
_WRITTEN: dict[type, Callable[[Any], Any]] = {
    bytes: bytes.hex, datetime: datetime.isoformat, date: date.isoformat,
    time_of_day: time_of_day.isoformat, Decimal: str, UUID: str,
    Pairs: lambda value: value.pairs,
    timedelta: lambda value: json.dumps([value.days, value.seconds, value.microseconds]),
}  # fmt: skip
_READ: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex, "datetime": datetime.fromisoformat, "date": date.fromisoformat,
    "time": time_of_day.fromisoformat, "Decimal": Decimal, "UUID": UUID,
    "Pairs": dict,
    "timedelta": lambda text: timedelta(*json.loads(text)),
}  # fmt: skip


class Closed(Exception):
    """The other end is gone."""


class Late(Exception):
    """The deadline has passed."""


class TooLong(Exception):
    """The message is longer than the reader allows."""


class Channel:
    """A pipe for each direction. A deadline is a time of `time.monotonic()`; None: no deadline."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self._writing = writing

    def send(self, message: Any, deadline: float | None = None) -> None:
        """Send one message. Raises `Closed` or `Late`.

        Raises TypeError for a value that cannot be sent.
        """
        data = encoded(message)
        left = memoryview(len(data).to_bytes(_HEAD, "big") + data)
        while left:
            part = left
            if deadline is not None:
                _wait(self._writing, select.POLLOUT, deadline)
                part = left[: select.PIPE_BUF]  # a pipe that is ready has room for these
            try:
                left = left[os.write(self._writing, part) :]
            except BrokenPipeError:
                raise Closed from None

    def receive(self, most: int, deadline: float | None = None) -> Any:
        """Receive one message of at most `most` bytes. Raises `Closed`, `Late` or `TooLong`."""
        length = int.from_bytes(self._read(_HEAD, deadline), "big")
        if length > most:
            raise TooLong
        return json.loads(self._read(length, deadline), object_hook=_from_json)

    def close(self) -> None:
        os.close(self.reading)
        os.close(self._writing)

    def _read(self, length: int, deadline: float | None) -> bytes:
        found = bytearray()
        while len(found) < length:
            _wait(self.reading, select.POLLIN, deadline)
            part = os.read(self.reading, min(_CHUNK, length - len(found)))
            if not part:
                raise Closed
            found += part
        return bytes(found)


def encoded(message: Any) -> bytes:
    """Return the message as JSON. Raises TypeError for a value that cannot be sent."""
    return json.dumps(message, default=_to_json).encode()


def _to_json(value: Any) -> Any:
    for kind, written in _WRITTEN.items():
        if type(value) is kind:
            return {_TYPE: kind.__name__, _TEXT: written(value)}
    raise TypeError(f"A value of the type {type(value).__name__} cannot be a parameter.")


def _from_json(value: dict[str, Any]) -> Any:
    if value.keys() == {_TYPE, _TEXT}:
        return _READ[value[_TYPE]](value[_TEXT])
    return value


def _wait(fd: int, event: int, deadline: float | None) -> None:
    """Wait until the descriptor is ready, or the other end is gone."""
    poll = select.poll()
    poll.register(fd, event)
    left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(left):
        raise Late
