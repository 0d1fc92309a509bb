"""A django-q2 pool whose queue is locked for ever by a worker that was killed while it waited.

No worker of such a pool is handed a task again. What was to be done is in the rows, and the loop
of every worker process looks there.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django_q.models import OrmQ

from agents.services.approvals import DecisionRequest, decide_approval
from tests.support.cluster import Cluster, wait_for_exit
from tests.support.runs import (
    make_agent,
    make_user,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


ATTEMPTS = 10


def kill_all_workers(cluster: Cluster) -> None:
    """One of them holds the lock of the queue, if it has come so far as to wait for a task."""
    workers = cluster.workers()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    for pid in workers:
        wait_for_exit(pid)
    wait_until(cluster.is_complete, "new workers")


def live_through(user: User) -> None:
    """A run that asks, is answered and goes on: two tasks announce it to the workers."""
    run = start_run(user)
    wait_for_status(run, "waiting")
    request = run.approvals.get()
    decide_approval(request.id, DecisionRequest("approve", request.digest), by=user)
    wait_for_status(run, "completed")


def test_a_frozen_pool_still_takes_new_runs_and_those_that_were_decided(directory: Path) -> None:
    user = make_user()
    asks = {"name": "write_file", "input": {"path": "/a", "content": "x"}}
    model = script_file(directory, [{"tool_calls": [asks]}, {"text": "Done."}])
    make_agent(user, model=model, interrupt_on={"write_file": True})
    with Cluster(directory) as cluster:
        for _ in range(ATTEMPTS):
            OrmQ.objects.all().delete()
            kill_all_workers(cluster)
            live_through(user)
            if OrmQ.objects.count() == 2:
                return  # it lived, and nobody has done the tasks that announced it
        pytest.fail(f"the pool did not freeze in {ATTEMPTS} attempts")


def test_a_pool_that_is_well_takes_its_tasks(directory: Path) -> None:
    """What the test above concludes from tasks that are left holds only if none is left here."""
    user = make_user()
    make_agent(user)
    with Cluster(directory):
        wait_for_status(start_run(user), "completed")
        wait_until(lambda: not OrmQ.objects.exists(), "the task to be acknowledged")
