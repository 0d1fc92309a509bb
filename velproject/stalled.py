"""Detection of due work that no worker takes although the workers seem alive.

For example, somebody has stopped the processes of the cluster (SIGSTOP), or they hang.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models.functions import Coalesce
from django.utils import timezone
from django_q.models import OrmQ

from agents.disk_space import is_used_up
from agents.models import POOL, Machine, Run, RunClock
from agents.models.database_clock import now_sql
from agents.services.placement import queue_of
from agents.settings import MachineSettings, WorkerSettings
from agents.states import RunStatus

Due = frozenset[tuple[str, str]]
"""Work that waits for a worker: ("task" or "run", id)."""

LONGEST_PATIENCE = 300.0
MOST = 200
"""The most rows that are examined: of more, some would have been taken."""


def due_work() -> Due:
    """Return the work that workers should take now.

    This is due tasks, runs whose worker has disappeared, and queued runs for which workers have
    room. Each of several hosts only considers the work that it may do, and none while it must not
    start work. On a full disk the result is empty, since runs wait for space.
    """
    if is_used_up():
        return frozenset()
    name = MachineSettings.now().HOST
    if name and not Machine.objects.filter(pk=name, dead_at=None, is_draining=False).exists():
        return frozenset()
    keys = [settings.Q_CLUSTER["name"], *([queue_of(name)] if name else [])]
    tasks = OrmQ.objects.filter(
        key__in=keys, lock__lte=timezone.now() - timedelta(seconds=1)
    ).order_by("lock", "pk")
    due = {("task", str(pk)) for pk in tasks.values_list("pk", flat=True)[:MOST]}
    clocks = RunClock.objects.filter(run__executor=POOL, run__status=RunStatus.RUNNING)
    queued = Run.objects.filter(executor=POOL, status=RunStatus.QUEUED)
    if MachineSettings.now().pins_threads:
        here = {"home__in": ("", name)}
        queued = queued.alias(home=Coalesce("thread__root__host", "thread__host")).filter(**here)
        of_run = Coalesce("run__thread__root__host", "run__thread__host")
        clocks = clocks.alias(home=of_run).filter(**here)
    lost = clocks.extra(where=[f"lease_until < {now_sql()} - 5"])  # noqa: S610 - a constant
    due |= {("run", pk) for pk in lost.values_list("run_id", flat=True)[:MOST]}
    room = settings.WORKERS * WorkerSettings.now().RUNS_PER_WORKER
    driven = clocks.extra(where=[f"lease_until > {now_sql()}"])  # noqa: S610 - a constant
    if driven.count() < room:
        oldest = queued.order_by("created_at")  # in the order of the workers
        due |= {("run", pk) for pk in oldest.values_list("pk", flat=True)[:MOST]}
    return frozenset(due)


def read_due_work() -> Due:
    """Return `due_work`, and close the database connection. For a short-lived thread."""
    try:
        return due_work()
    finally:
        connection.close()


class StallWatch:
    """Decides from repeated looks at the due work whether the work has stalled.

    Work has stalled if there was due work for `patience` seconds, and all work that was due at the
    start of this time still is. A long queue that moves is not stalled. Each restart doubles the
    patience until work is taken: on a machine that is too busy to start workers within the
    patience, the next restart would otherwise undo each restart.
    """

    def __init__(self, patience: float = 20.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = self._usual = patience
        self._clock = clock
        self._first: Due = frozenset()
        self._since = 0.0

    def looks_stalled(self, due: Due) -> bool:
        """Add one look at the due work, and return whether the work has stalled.

        After True, the time starts again.
        """
        now = self._clock()
        if not self._first <= due or not due:
            self._patience = self._usual
        if not self._first or not self._first <= due:
            self._first, self._since = due, now
            return False
        if now - self._since < self._patience:
            return False
        self._patience = min(2 * self._patience, LONGEST_PATIENCE)
        self._since = now
        return True
