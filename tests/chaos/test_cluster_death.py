"""Clusters that are killed, stopped or frozen, or lose a process, while they drive runs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from agents.models import RunClock
from tests.chaos.storm import Storm, leftover_sandboxes, storm
from tests.chaos.test_worker_death import SHORT_LEASE, any_seed
from tests.support.cluster import APPLICATION, freeze, thaw
from tests.support.runs import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]


def kill_the_tree(running: Storm) -> None:
    """Kill all processes, as when the machine has no memory left or loses power."""
    running.cluster.kill_tree()
    running.cluster.start()


def kill_all_workers(running: Storm) -> None:
    running.kill(*running.cluster.workers())
    wait_until(running.cluster.is_complete, "new workers")


def kill_the_sentinel(running: Storm) -> None:
    """Kill the sentinel. A supervisor then kills the rest and starts a new cluster."""
    running.kill(*running.cluster.pids("sentinel"))
    running.cluster.kill_tree()
    running.cluster.start()


def kill_the_pusher(running: Storm) -> None:
    _replace(running, "pusher")


def kill_the_monitor(running: Storm) -> None:
    _replace(running, "monitor")


def _replace(running: Storm, role: str) -> None:
    [pid] = running.cluster.pids(role)
    running.kill(pid)
    wait_until(lambda: running.cluster.pids(role), f"another {role}")


def stop_and_start(running: Storm) -> None:
    """Stop the cluster, as an update does: it hands its runs back without waiting for a lease."""
    assert running.cluster.terminate()
    # Nobody may have claimed the runs of workers that were killed, or too slow to renew a lease.
    driven = RunClock.objects.filter(run__status="running").values_list("run_id", "fence")
    assert set(driven) <= running.lost_claims()
    assert leftover_sandboxes(running.names) == []
    running.cluster.kill_tree()
    running.cluster.start()


def freeze_a_worker(running: Storm) -> None:
    """Freeze a worker, as a suspended machine does. When it continues, others have its runs."""
    pid = running.random.choice(running.cluster.workers())
    freeze(pid)
    while holds_the_whole_database():
        thaw(pid)
        running.pause()
        freeze(pid)
    driven = running.driven_by(pid)
    wait_until(
        lambda: not set(driven.items()) & set(running.driven_by(pid).items()),
        "its runs to be taken by others",
    )
    thaw(pid)


def holds_the_whole_database() -> bool:
    """Return whether a frozen writer has SQLite's only lock: then all others wait for it."""
    if connection.vendor != "sqlite":
        return False
    with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=2)) as another:
        try:
            another.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


def lose_the_database(running: Storm) -> None:
    """Restart PostgreSQL: every connection of the cluster ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = %s AND datname = current_database()",
            [APPLICATION],
        )


DEATHS: list[Callable[[Storm], None]] = [
    stop_and_start,
    freeze_a_worker,
    kill_all_workers,
    kill_the_tree,
    kill_the_sentinel,
    kill_the_pusher,
    kill_the_monitor,
]
if "postgresql" in os.environ.get("VEL_TEST_DATABASE_URL", ""):
    DEATHS.append(lose_the_database)
FOR_EVERY_TEST_RUN = (freeze_a_worker, kill_all_workers, stop_and_start, kill_the_tree)


def suffer(running: Storm, deaths: Iterable[Callable[[Storm], None]], at_once: int) -> None:
    """Let these events happen one after the other while `at_once` runs are driven."""
    for death in deaths:
        running.start_runs(at_once - len(running.unfinished()))
        running.wait_for_progress()
        running.pause(0.3, 1.0)
        death(running)
    running.wait_for_all()
    running.check()
    print(running.summary())


@pytest.mark.slow
def test_runs_continue_after_the_death_of_any_part_of_a_cluster(directory: Path) -> None:
    with storm(directory, seed=any_seed(), lease=SHORT_LEASE) as running:
        suffer(running, FOR_EVERY_TEST_RUN, at_once=4)


@pytest.mark.storm
@pytest.mark.parametrize("death", DEATHS)
def test_runs_continue_after_repeated_deaths(
    directory: Path, death: Callable[[Storm], None]
) -> None:
    with storm(directory, seed=any_seed(), lease=SHORT_LEASE) as running:
        suffer(running, [death] * 10, at_once=12)
