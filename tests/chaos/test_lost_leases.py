"""Runs of a worker that is known to be dead: they do not wait for the end of its lease.

The lease is an hour here.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agents.models import Run, RunClock
from agents.services.run_control import cancel_run
from tests.chaos.storm import storm
from tests.chaos.test_worker_death import any_seed, kill_workers
from tests.support.cluster import Cluster
from tests.support.runs import (
    event_types,
    make_agent,
    make_user,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

HOUR = 3600.0


def driven_run(directory: Path, cluster: Cluster) -> tuple[Run, int]:
    """A run whose model takes ten minutes, and the worker that drives it."""
    user = make_user()
    make_agent(user, model=script_file(directory, [{"text": "slow", "delay": 600}]))
    run = start_run(user)
    wait_until(lambda: "step.started" in event_types(run), "a driver that waits for the model")
    holder = RunClock.objects.get(run=run).lease_holder
    [worker] = [pid for pid in cluster.workers() if f":{pid}:" in holder]
    return run, worker


def test_another_worker_goes_on_with_its_run(directory: Path) -> None:
    with Cluster(directory, VEL_TEST_LEASE=str(HOUR)) as cluster:
        run, worker = driven_run(directory, cluster)
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: RunClock.objects.get(run=run).fence == 2, "the next driver")
        assert f":{worker}:" not in RunClock.objects.get(run=run).lease_holder


def test_a_cancelled_run_ends(directory: Path) -> None:
    with Cluster(directory, VEL_TEST_LEASE=str(HOUR)) as cluster:
        run, worker = driven_run(directory, cluster)
        os.kill(worker, signal.SIGKILL)
        cancel_run(run.pk, by="ada")
        wait_for_status(run, "cancelled")


@pytest.mark.bubblewrap
def test_runs_with_sandboxes_end_right(directory: Path) -> None:
    with storm(directory, seed=any_seed(), lease=HOUR) as running:
        kill_workers(running, kills=3, at_once=5)
