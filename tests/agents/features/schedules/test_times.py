"""The due times of schedules, also on the days when clocks change."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.features.schedules.times import (
    MOST_MISSED,
    BadTimes,
    latest_until,
    next_after,
    times_of,
)

VIENNA, NEW_YORK = "Europe/Vienna", "America/New_York"


def at(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def following(cron: str, zone: str, start: datetime, count: int) -> list[str]:
    times = times_of(cron, None, zone)
    found = []
    for _ in range(count):
        later = next_after(times, start)
        assert later is not None
        start = later
        found.append(later.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M %z"))
    return found


@pytest.mark.parametrize(
    ("cron", "zone", "start", "expected"),
    [
        # 2026-03-29 02:00 to 03:00 does not exist in Vienna.
        (
            "30 2 * * *",
            VIENNA,
            "2026-03-28T12:00",
            ["03-29 03:00 +0200", "03-30 02:30 +0200"],
        ),
        # Two times within the gap become one after it.
        (
            "15,45 2 * * *",
            VIENNA,
            "2026-03-28T12:00",
            ["03-29 03:00 +0200", "03-30 02:15 +0200", "03-30 02:45 +0200"],
        ),
        # 2026-10-25 02:00 to 03:00 exists twice.
        (
            "30 2 * * *",
            VIENNA,
            "2026-10-24T12:00",
            ["10-25 02:30 +0200", "10-26 02:30 +0100"],
        ),
        # Elapsed time counts both.
        (
            "*/30 2 * * *",
            VIENNA,
            "2026-10-25T01:00",
            ["10-25 02:00 +0200", "10-25 02:30 +0200", "10-25 02:00 +0100", "10-25 02:30 +0100"],
        ),
        (
            "30 1 * * *",
            NEW_YORK,
            "2026-10-31T12:00",
            ["11-01 01:30 -0400", "11-02 01:30 -0500"],
        ),
        (
            "30 2 * * *",
            NEW_YORK,
            "2026-03-07T12:00",
            ["03-08 03:00 -0400", "03-09 02:30 -0400"],
        ),
    ],
)
def test_clocks_that_are_changed(cron: str, zone: str, start: str, expected: list[str]):
    assert following(cron, zone, at(start, zone), len(expected)) == expected


def test_a_time_is_not_due_again_while_the_clock_shows_it_twice():
    """Saved between the two 02:30: the parser returns the first one, which has passed."""
    second_showing = at("2026-10-25T01:10")
    assert following("30 2 * * *", VIENNA, second_showing, 1) == ["10-26 02:30 +0100"]


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "60 * * * *",
        "* * * *",
        "* * * * * *",
        "@daily",
        "",
        "1-0 * * * *",
        "*/0 * * * *",
        "0 0 1 13 *",
        "0 0 * * 9",
        "0 0 * * ²L",
        "٣ * * * *",
        "0 0 * * ſun",
        "0 " * 60,
        "0" + ",0" * 60 + " * * * *",
    ],
)
def test_invalid_times_are_refused(cron: str):
    with pytest.raises(BadTimes):
        times_of(cron, None, "UTC")


def test_a_day_that_only_leap_years_have():
    assert following("0 9 29 2 *", "UTC", at("2026-01-01T00:00"), 1) == ["02-29 09:00 +0000"]


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../etc/passwd", "Europe", "UTC\x00", "x" * 99]
)
def test_invalid_time_zones_are_refused(zone: str):
    with pytest.raises(BadTimes, match="time_zone: No such"):
        times_of("0 0 * * *", None, zone)


@pytest.mark.parametrize("seconds", [None, 0, 59, 366 * 86_400 + 1])
def test_invalid_intervals_are_refused(seconds: int | None):
    with pytest.raises(BadTimes):
        times_of("", seconds, "UTC")


def test_an_expression_that_is_dear_is_refused_or_read_in_time():
    """A user who saves a schedule cannot block a worker."""
    begun = time.process_time()
    for cron in ("0 0 29 2 MON#5", "59 23 31 12 SUN", "0 0 29 2 FRIL", "0 0 LW 2 */7"):
        try:
            times = times_of(cron, None, VIENNA)
        except BadTimes:
            continue
        next_after(times, datetime.now(UTC))
    assert time.process_time() - begun < 2


field = st.sampled_from(["*", "*/5", "0", "30", "0,30", "15-45/15"])
hour = st.sampled_from(["*", "*/2", "0", "1", "2", "3", "1-3", "2,3"])
around = st.integers(min_value=0, max_value=72 * 60)
CHANGES = {VIENNA: ("2026-03-27", "2026-10-23"), NEW_YORK: ("2026-03-06", "2026-10-30")}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(field, hour, st.sampled_from(sorted(CHANGES)), st.integers(0, 1), around)
def test_times_increase_and_match_cron(
    minute: str, hours: str, zone: str, which: int, minutes: int
):
    start = at(CHANGES[zone][which], zone) + timedelta(minutes=minutes)
    times = times_of(f"{minute} {hours} * * *", None, zone)
    before, found = start, []
    for _ in range(8):
        later = next_after(times, before)
        assert later is not None
        assert later > before
        found.append(later)
        before = later
    # The search finds every time from any start.
    middle = start + (found[3] - start) / 2
    assert next_after(times, middle) == next(each for each in found if each > middle)
    # In local time, on days without a clock change, each time matches the expression.
    for each in found:
        local = each.astimezone(ZoneInfo(zone))
        assert local.second == 0
        if hours not in ("*", "*/2") and local.hour != 3:
            assert local.hour in (0, 1, 2)
    # Missed times become one, the last.
    end = found[5]
    assert latest_until(times, found[0], end) == (end, 5)
    assert latest_until(times, found[0], found[6] - timedelta(seconds=1)) == (end, 5)


@settings(max_examples=50, deadline=None)
@given(st.integers(60, 100_000), st.integers(0, 10_000_000))
def test_intervals(seconds: int, elapsed: int):
    times = times_of("", seconds, "UTC")
    first = at("2026-01-01T00:00")
    now = first + timedelta(seconds=elapsed)

    latest, missed = latest_until(times, first, now)

    assert latest <= now < latest + timedelta(seconds=seconds)
    assert (latest - first) / timedelta(seconds=seconds) == elapsed // seconds
    assert missed == min(elapsed // seconds, MOST_MISSED)


@pytest.mark.parametrize(("cron", "seconds"), [("0 * * * *", None), ("", 3600)])
def test_before_the_due_time_nothing_is_missed(cron: str, seconds: int | None):
    due = at("2026-01-01T12:00")

    found = latest_until(times_of(cron, seconds, "UTC"), due, due - timedelta(hours=3))

    assert found == (due, 0)


def test_a_year_of_downtime_is_looked_at_quickly():
    times = times_of("* * * * *", None, VIENNA)
    first = at("2025-01-01T00:00")
    now = at("2026-01-01T00:00") + timedelta(seconds=30)
    begun = time.process_time()

    assert latest_until(times, first, now) == (at("2026-01-01T00:00"), MOST_MISSED)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("cron", "last"),
    [("0 9 * * *", "2026-01-01T09:00"), ("0 9 1 1 *", "2026-01-01T09:00"), ("0 9 2 1 *", None)],
)
def test_missed_times_count_as_one(cron: str, last: str | None):
    """Otherwise a run for a time years ago could be followed by a run for each later time."""
    times = times_of(cron, None, VIENNA)
    first = next_after(times, at("1000-01-01T00:00"))
    now = at("2026-01-01T15:00")
    assert first is not None

    due, missed = latest_until(times, first, now)

    following_one = next_after(times, due)
    assert following_one is not None
    assert due <= now < following_one
    assert missed == MOST_MISSED
    assert last is None or due == at(last, VIENNA)


def test_the_last_counted_time_may_be_the_final_one():
    times = times_of("0 9 * * *", None, "UTC")
    first = at("2020-01-01T09:00")
    last = first + timedelta(days=MOST_MISSED)
    assert latest_until(times, first, last + timedelta(minutes=1)) == (last, MOST_MISSED)
