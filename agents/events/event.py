"""Base classes for event types."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Final


class Omitted(Enum):
    """The type of `OMITTED`."""

    OMITTED = "omitted"


OMITTED: Final = Omitted.OMITTED
"""The default of a field that the data of some events do not have. `None` is written as null."""


class InvalidEvent(Exception):
    """An event cannot be written. The message names the change that is needed."""


class Event:
    """One event of a run's log, before it has a seq.

    Subclass it as a frozen dataclass with keyword arguments only, and add the class to the list
    `EVENTS` of its module. Describe in the docstring of the class when the event is written, and in
    the docstring of each field its meaning and unit. Values are JSON: text, numbers, booleans,
    None, lists and dictionaries. The data have the fields in the order of the class.
    """

    type: ClassVar[str]
    """Its name in the log and for clients: a subject and a past participle, as `run.started`."""
    persistent: ClassVar[bool] = True
    """True: it is written in the transaction of the change that it reports.

    False: it is streamed. Such events are collected for 50 ms, and a crash or a failure of the
    database may lose them. A later event has all of the information.
    """

    def data(self) -> dict[str, Any]:
        """Return the fields that this event has."""
        return {name: value for name, value in vars(self).items() if value is not OMITTED}


class Piece(Event):
    """A streamed piece of a longer text. Neighbours of the same part are written as one event."""

    persistent = False
    part: ClassVar[str]
    """The name of the field with the id of the part."""

    @classmethod
    def of(cls, part: str, text: str) -> Piece:
        """Return the event for `text`, the next piece of `part`."""
        return cls(**{cls.part: part, "text": text})
