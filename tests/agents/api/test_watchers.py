"""Many clients watch one run at the same time, over WebSockets and over HTTP."""

from __future__ import annotations

import statistics

import pytest

from tests.support.site import Site
from tests.support.watching import Watched, watch_one_run

TIMES_LONGER = 25
"""The most that fifty times as many watchers may delay the median event. One after the other, they
would delay it about fifty times."""


def check_complete(watchers: list[Watched], events: int) -> None:
    for watched in watchers:
        assert watched.seqs == list(range(1, events + 1)), watched.door


@pytest.mark.slow
def test_ten_watchers_get_every_event_once_and_in_order(site: Site) -> None:
    watchers = watch_one_run(site, 10, batches=10, size=30, pause=0.02)

    assert {watched.door for watched in watchers} == {"socket", "http"}
    check_complete(watchers, 1 + 10 * 30 + 1)


@pytest.mark.storm
def test_a_hundred_watchers_wait_little_longer_than_two(site: Site) -> None:
    two = _median_delays(watch_one_run(site, 2, batches=100, size=1))
    hundred = watch_one_run(site, 100, batches=100, size=1)

    check_complete(hundred, 1 + 100 + 1)
    for door, delay in _median_delays(hundred).items():
        assert delay <= TIMES_LONGER * two[door], door


def _median_delays(watchers: list[Watched]) -> dict[str, float]:
    return {
        door: statistics.median(
            delay for each in watchers if each.door == door for delay in each.delays[1:]
        )
        for door in ("socket", "http")
    }
