"""When a schedule is due: cron by the wall clock of a time zone, or an interval.

DST as Debian's cron has it: a time that the clock jumps over comes right after the gap, a time
that the clock shows twice comes once. Expressions whose minute or hour begins with `*` go by
elapsed time instead, so `*/15 * * * *` comes every fifteen minutes on such a day, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

SHORTEST, LONGEST = 60, 366 * 86_400
"""Seconds that an interval may have."""
MOST_MISSED = 1_000
"""Missed times are counted up to here."""
_LOOK_BACK = timedelta(hours=1)


class BadTimes(ValueError):
    """The expression, interval or time zone means nothing. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Times:
    """`cron`, or else `seconds`. Make it with `times_of`."""

    cron: str
    seconds: int
    zone: ZoneInfo


def times_of(cron: str, seconds: int | None, time_zone: str) -> Times:
    """Raises `BadTimes`, also for an expression that never comes, such as a 30th of February."""
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
    """The first time later than `moment`, in UTC; None: there is none.

    Of intervals `moment` is a time of the schedule.
    """
    if times.seconds:
        return moment + timedelta(seconds=times.seconds)
    # In a repeated hour the parser may name the first showing again: only what is later counts.
    for found in CronSim(times.cron, moment.astimezone(times.zone)):
        due = found.astimezone(UTC)
        if due > moment:
            return due
    return None


def latest_until(times: Times, due: datetime, now: datetime) -> tuple[datetime, int]:
    """(the last time from `due` on that is not later than `now`, how many came before it).

    `due` is a time of the schedule; it is the last one where `now` is before it.
    """
    if times.seconds:
        count = int((now - due) / timedelta(seconds=times.seconds))
        return due + timedelta(seconds=count * times.seconds), min(count, MOST_MISSED)
    missed = 0
    while (later := next_after(times, due)) is not None and later <= now:
        due, missed = later, missed + 1
        if missed == MOST_MISSED:
            due = _last_until(times, due, now)
            break
    return due, missed


def _last_until(times: Times, due: datetime, now: datetime) -> datetime:
    """Not all of a long time are gone through one by one: looked for from `now` back."""
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
