"""Times of events without ambiguity: a day, or a moment with its zone."""

from __future__ import annotations

from datetime import date, datetime
from functools import lru_cache
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import AfterValidator


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _zone(name: str) -> str:
    if name and name not in _zones():
        raise ValueError("is no time zone: use a name as Europe/Berlin")
    return name


def _when(text: str) -> str:
    parsed(text)
    return text


def _moment(text: str) -> str:
    found = parsed(text)
    if not isinstance(found, datetime) or found.tzinfo is None:
        raise ValueError("must be a moment with its offset, as 2026-11-23T09:00:00+01:00")
    return found.isoformat()


def parsed(text: str) -> date:
    """Return a date, or a `datetime` (also a `date`). Raises `ValueError`."""
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        if "T" in text and len(text) <= 40:
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError("must be a date (2026-11-23) or a time (2026-11-23T09:00:00+01:00)")


Zone = Annotated[str, AfterValidator(_zone)]
When = Annotated[str, AfterValidator(_when)]
Moment = Annotated[str, AfterValidator(_moment)]


def problem_of(start: str, end: str, zone: str) -> str:
    """Return the problem of an event's start and end, or an empty text."""
    first, last = parsed(start), parsed(end)
    if isinstance(first, datetime) != isinstance(last, datetime):
        return "start and end must both be dates, or both times."
    if isinstance(first, datetime) and isinstance(last, datetime):
        if (first.tzinfo is None) != (last.tzinfo is None):
            return "start and end must both have an offset, or neither."
        if first.tzinfo is None and not zone:
            return "Say the time_zone, or write the times with their offset."
        return "" if first < last else "end must be after start."
    return "" if first < last else "end is the day after the last: it must be after start."


def as_google(text: str, zone: str) -> dict[str, str]:
    """Return the start or end of an event in the API's format."""
    found = parsed(text)
    if not isinstance(found, datetime):
        return {"date": text}
    return {"dateTime": found.isoformat(), **({"timeZone": zone} if zone else {})}
