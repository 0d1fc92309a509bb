"""Many clients watch one run at the same time, over WebSockets and over HTTP."""

from __future__ import annotations

import statistics

import pytest

from agents.events.sqlite import POLL_SECONDS
from tests.support.site import Site
from tests.support.watching import Watched, watch_one_run

DELTA_BATCH_SECONDS = 0.05
MEDIAN_SECONDS = DELTA_BATCH_SECONDS + 2 * POLL_SECONDS


def check_complete(watchers: list[Watched], events: int) -> None:
    for watched in watchers:
        assert watched.seqs == list(range(1, events + 1)), watched.door


@pytest.mark.slow
def test_ten_watchers_get_every_event_once_and_in_order(site: Site) -> None:
    watchers = watch_one_run(site, 10, batches=10, size=30, pause=0.02)

    assert {watched.door for watched in watchers} == {"socket", "http"}
    check_complete(watchers, 1 + 10 * 30 + 1)


@pytest.mark.storm
def test_a_hundred_watchers_get_every_event_soon(site: Site) -> None:
    watchers = watch_one_run(site, 100, batches=100, size=1)

    check_complete(watchers, 1 + 100 + 1)
    for door in ("socket", "http"):
        delays = [delay for each in watchers if each.door == door for delay in each.delays[1:]]
        assert statistics.median(delays) <= MEDIAN_SECONDS, door
