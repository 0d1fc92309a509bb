"""Tasks are only hints: runs do not depend on them, and killed workers leave none."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task

from agents.services.approvals.decisions import DecisionRequest, decide_approval
from tests.support.cluster import Cluster, freeze, wait_for_exit
from tests.support.runs import (
    make_agent,
    make_user,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def kill_all_workers(cluster: Cluster) -> None:
    """Kill all workers; most of them wait for a task."""
    workers = cluster.workers()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    for pid in workers:
        wait_for_exit(pid)
    wait_until(cluster.is_complete, "new workers")


def wait_for_no_task() -> None:
    wait_until(lambda: not OrmQ.objects.exists(), "the workers to take all tasks")


@pytest.mark.slow
def test_a_run_is_driven_even_if_the_pusher_is_frozen(directory: Path) -> None:
    user = make_user()
    asks = {"name": "write_file", "input": {"path": "/a", "content": "x"}}
    model = script_file(directory, [{"tool_calls": [asks]}, {"text": "Done."}])
    make_agent(user, model=model, interrupt_on={"write_file": True})
    with Cluster(directory) as cluster:
        [pusher] = wait_until(lambda: cluster.pids("pusher"), "the pusher")
        freeze(pusher)
        run = start_run(user)
        wait_for_status(run, "waiting")
        request = run.approvals.get()
        decide_approval(request.id, DecisionRequest("approve", request.digest), by=user)
        wait_for_status(run, "completed")
        assert OrmQ.objects.count() == 2


@pytest.mark.slow
def test_workers_take_tasks_after_all_workers_were_killed_while_they_waited(
    directory: Path,
) -> None:
    with Cluster(directory) as cluster:
        async_task("time.time")
        wait_for_no_task()
        for _ in range(3):
            kill_all_workers(cluster)
        for _ in range(5):
            async_task("time.time")
        wait_for_no_task()


@pytest.mark.slow
def test_a_worker_that_is_killed_leaves_no_task_of_its_runs(directory: Path) -> None:
    user = make_user()
    make_agent(user)
    marked = directory / "died"
    with Cluster(directory, VEL_TEST_DIES_WITH_RESULT=str(marked)):
        run = start_run(user)
        wait_until(marked.exists, "a worker that dies while it reports a task as done")
        wait_for_status(run, "completed")
        due = OrmQ.objects.filter(lock__lt=timezone.now())
        wait_until(lambda: not due.exists(), "the workers to take all tasks")
        # With django-q2's own queue, the task of the killed worker would stay for two minutes.
        assert not OrmQ.objects.exists()
