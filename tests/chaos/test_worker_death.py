"""Workers that are killed at any time: their runs continue elsewhere, and no work is repeated.

The short storms belong to `make test`; the long ones, marked `storm`, kill a hundred workers on
each database.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.storm import Storm, storm
from tests.support.runs import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]

SHORT_LEASE = 2.0
LEASE_OF_LONG_STORMS = 5.0
"""Seconds. A busy machine can miss a shorter one so often that Vel gives up a run."""
LIMIT = 45.0
"""The limit in seconds until a run of a killed worker continues, with production leases."""


def any_seed() -> int:
    """Return a random seed, or `VEL_TEST_SEED` to repeat a storm as closely as possible."""
    return int(os.environ.get("VEL_TEST_SEED", random.SystemRandom().randrange(10**6)))


def kill_a_worker(running: Storm) -> None:
    """Kill a worker, mostly a busy one. An idle one can take its pool's queue with it."""
    workers = running.cluster.workers()
    busy = [pid for pid in workers if running.driven_by(pid)]
    pid = running.random.choice(busy if busy and running.random.random() < 0.8 else workers)
    running.kill(pid)
    wait_until(running.cluster.is_complete, "another worker in its place")


def kill_workers(running: Storm, kills: int, at_once: int) -> None:
    """Kill `count` workers while `at_once` runs are active."""
    for _ in range(kills):
        running.start_runs(at_once - len(running.unfinished()))
        running.wait_for_progress()
        running.pause()
        kill_a_worker(running)
    running.wait_for_all()
    running.check()
    assert running.delays(), "no run lost its worker in this storm"
    print(running.summary())


def test_runs_continue_when_their_workers_are_killed(directory: Path) -> None:
    with storm(directory, seed=any_seed(), lease=SHORT_LEASE) as running:
        kill_workers(running, kills=3, at_once=5)


@pytest.mark.storm
@pytest.mark.parametrize("command", ["vel", "qcluster"])
def test_runs_continue_when_a_hundred_workers_are_killed(directory: Path, command: str) -> None:
    seed = any_seed()
    with storm(directory, seed=seed, lease=LEASE_OF_LONG_STORMS, command=command) as running:
        kill_workers(running, kills=100, at_once=12)


@pytest.mark.storm
def test_a_run_continues_within_45_seconds_with_real_leases(directory: Path) -> None:
    with storm(directory, seed=any_seed(), lease=None) as running:
        kill_workers(running, kills=6, at_once=12)
        assert running.delays()[-1] < LIMIT
