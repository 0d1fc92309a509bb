"""Due times of a schedule: cron by the wall clock of a time zone, or an interval.

Daylight saving time is as in Debian's cron: a skipped time comes right after the gap, and a
repeated time comes once. Expressions whose minute or hour starts with `*` use elapsed time instead,
so `*/15 * * * *` comes every fifteen minutes on these days too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

SHORTEST, LONGEST = 60, 366 * 86_400
"""Limits of an interval in seconds."""
MOST_MISSED = 1_000
"""Most missed times that are counted."""
_LOOK_BACK = timedelta(hours=1)


class BadTimes(ValueError):
    """An invalid expression, interval or time zone. The text explains the correct form."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a schedule: `cron`, or else `seconds`. Create it with `times_of`."""

    cron: str
    seconds: int
    zone: ZoneInfo


def times_of(cron: str, seconds: int | None, time_zone: str) -> Times:
    """Parse the times. Raises `BadTimes` for invalid times, and for times that never occur.

    An example is the 30th of February.
    """
    zone = _zone(time_zone)
    if bool(cron) == (seconds is not None):
        raise BadTimes("Give either a cron expression or an interval.")
    if seconds is not None:
        if not SHORTEST <= seconds <= LONGEST:
            raise BadTimes(f"An interval has {SHORTEST} to {LONGEST:,} seconds.")
        return Times("", seconds, zone)
    if not cron.isascii() or len(cron) > 100 or len(cron.split()) != 5:
        raise BadTimes(
            "cron: Write five fields: minute, hour, day of month, month, weekday, as "
            "30 8 * * mon-fri."
        )
    times = Times(" ".join(cron.split()), 0, zone)
    try:
        never = next_after(times, datetime.now(UTC)) is None
    except CronSimError as error:
        raise BadTimes(
            f"cron: {error}. The fields are minute 0-59, hour 0-23, day of month 1-31, month 1-12 "
            "and weekday 0-7 or sun-sat."
        ) from None
    if never:
        raise BadTimes("cron: No such time comes within fifty years.")
    return times


def next_after(times: Times, moment: datetime) -> datetime | None:
    """Return the first time after `moment`, or None if the expression never matches again.

    For cron, the result is in UTC. For an interval, `moment` must be a time of the schedule, and
    the result has its time zone.
    """
    if times.seconds:
        return moment + timedelta(seconds=times.seconds)
    # In a repeated hour the parser can return its first occurrence again: skip earlier times.
    for found in CronSim(times.cron, moment.astimezone(times.zone)):
        due = found.astimezone(UTC)
        if due > moment:
            return due
    return None


def latest_until(times: Times, due: datetime, now: datetime) -> tuple[datetime, int]:
    """Return the last time up to `now`, and the number of times from `due` before it.

    `due` is a time of the schedule. The number is at most `MOST_MISSED`. If `now` is before `due`,
    the result is `due` and 0.
    """
    if times.seconds:
        count = max(0, int((now - due) / timedelta(seconds=times.seconds)))
        return due + timedelta(seconds=count * times.seconds), min(count, MOST_MISSED)
    missed = 0
    while (later := next_after(times, due)) is not None and later <= now:
        due, missed = later, missed + 1
        if missed == MOST_MISSED:
            due = _last_until(times, due, now)
            break
    return due, missed


def _last_until(times: Times, due: datetime, now: datetime) -> datetime:
    """Search backwards from `now`, to avoid iterating over each time of a long period."""
    back = _LOOK_BACK
    later = next_after(times, max(due, now - back))
    while now - back > due and (later is None or later > now):
        back *= 2
        later = next_after(times, max(due, now - back))
    while later is not None and later <= now:
        due, later = later, next_after(times, later)
    return due


def _zone(name: str) -> ZoneInfo:
    if name not in _zones():
        raise BadTimes("time_zone: No such time zone here: write it as Europe/Vienna, or UTC.")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadTimes(f"time_zone: The data of {name} cannot be read on this machine.") from None


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
