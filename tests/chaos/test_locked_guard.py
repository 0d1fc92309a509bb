"""A worker that dies with the lock that it shares with its guard, and the death of a cluster."""

from __future__ import annotations

import signal
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, session_members
from tests.support.runs import make_agent, make_user, start_run, wait_for_status, wait_until
from velproject.cluster import MortalLock

pytestmark = pytest.mark.django_db(transaction=True)


def test_another_worker_takes_its_place(directory: Path) -> None:
    user = make_user()
    make_agent(user)
    marked = directory / "died"
    with Cluster(directory, VEL_TEST_DIES_WITH_RESULT=str(marked)) as cluster:
        before = set(cluster.workers())
        run = start_run(user)
        wait_until(marked.exists, "a worker that dies")
        wait_until(lambda: not before <= set(cluster.workers()), "its end")
        wait_until(cluster.is_complete, "another worker in its place")
        assert set(cluster.workers()) != before
        wait_for_status(run, "completed")


def test_no_process_of_a_cluster_outlives_its_main_process(directory: Path) -> None:
    with Cluster(directory) as cluster:
        wait_until(lambda: cluster.pids("pusher") and cluster.pids("monitor"), "all processes")
        main = cluster.main
        main.send_signal(signal.SIGKILL)
        wait_until(lambda: not session_members(main.pid), "the end of all processes")


def test_a_lock_that_is_free_is_held_and_released() -> None:
    lock = MortalLock(patience=0.05)
    with lock as held, lock as again:
        assert held
        assert again
    assert lock.acquire()
    lock.release()


def test_a_lock_is_passed_by_when_its_holder_has_died() -> None:
    lock = MortalLock(patience=0.05)
    holder = get_context("fork").Process(target=lock.acquire)
    holder.start()
    holder.join()
    with lock as held:
        assert not held
    with lock as held:
        assert not held
