"""Runs of a dead worker do not wait for the end of its lease if its death is known.

The lease is an hour here.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agents.ids import own_executor
from agents.models import Run, RunClock
from agents.services.machines.dead_workers import settle_dead
from agents.services.runs.control import cancel_run
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

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3600.0


def driven_run(directory: Path, cluster: Cluster) -> tuple[Run, int]:
    """Return a run whose model takes ten minutes, and the worker that drives it."""
    user = make_user()
    make_agent(user, model=script_file(directory, [{"text": "slow", "delay": 600}]))
    run = start_run(user)
    wait_until(lambda: "step.started" in event_types(run), "a driver that waits for the model")
    holder = RunClock.objects.get(run=run).lease_holder
    [worker] = [pid for pid in cluster.workers() if f":{pid}:" in holder]
    return run, worker


@pytest.mark.both_databases
def test_another_worker_continues_its_run(directory: Path) -> None:
    with Cluster(directory, VEL_TEST_LEASE=str(HOUR)) as cluster:
        run, worker = driven_run(directory, cluster)
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: RunClock.objects.get(run=run).fence == 2, "the next driver")
        assert f":{worker}:" not in RunClock.objects.get(run=run).lease_holder


@pytest.mark.both_databases
def test_a_cancelled_run_ends(directory: Path) -> None:
    with Cluster(directory, VEL_TEST_LEASE=str(HOUR)) as cluster:
        run, worker = driven_run(directory, cluster)
        os.kill(worker, signal.SIGKILL)
        cancel_run(run.pk, by="ada")
        wait_for_status(run, "cancelled")


@pytest.mark.both_databases
@pytest.mark.parametrize("cancelled", ["before the lease ends", "afterwards"])
def test_a_cancelled_run_of_a_dead_cluster_ends_without_another_worker(
    directory: Path, cancelled: str
) -> None:
    with Cluster(directory, VEL_TEST_LEASE=str(HOUR)) as cluster:
        run, _ = driven_run(directory, cluster)
        worker = RunClock.objects.get(run=run).lease_holder.split(":")[-1]
        cluster.kill_tree()
        if cancelled == "before the lease ends":
            assert cancel_run(run.pk, by="ada").status == "running"
        # The supervisor of `vel up` does the same.
        assert settle_dead([worker.rpartition("-")[0]], own_executor()) == 1
        if cancelled == "afterwards":
            assert cancel_run(run.pk, by="ada").status == "cancelled"
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert event_types(run)[-1] == "run.cancelled"
    assert event_types(run).count("run.cancelled") == 1
    clock = RunClock.objects.get(run=run)
    assert (clock.lease_until, clock.lease_holder, clock.fence) == (None, "", 1)
    assert settle_dead([worker], own_executor()) == 0


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_runs_with_sandboxes_end_right(directory: Path) -> None:
    with storm(directory, seed=any_seed(), lease=HOUR) as running:
        kill_workers(running, kills=3, at_once=5)
