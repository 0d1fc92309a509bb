"""Periodic work of a process that executes runs: find runs without a driver, and do jobs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable

from django.db import DatabaseError

from agents.engine.process.resources import Resources
from agents.engine.process.run_ends import EndTeller
from agents.engine.process.watching import count_found
from agents.engine.storage.database import Database
from agents.engine.storage.lease import orphaned_runs
from agents.ids import run_marker
from agents.kernel.features import Job, feature_jobs
from agents.models import POOL, ProcessKind
from agents.services.machines.dead_workers import (
    FINDS_SANDBOXES,
    inherit_lease,
    leases_of,
    settle_inherited,
)
from agents.services.machines.processes import PROCESS_HEARTBEAT_SECONDS, Reporter, leave_counts
from agents.services.runs.usage_totals import count_ended_runs
from agents.services.runs.wake import wake_due
from sandbox.errors import SandboxError
from sandbox.reaper import kill_marked

logger = logging.getLogger(__name__)

QUEUE_SWEEP_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
"""The longest interval between two tries of a job that always fails."""
SWEEP_SHARE = 4
"""One pass fills at most a fourth of the capacity, so several processes share the waiting runs.
Measured: of 24 runs that were queued together, one of two workers took 23, and used one core."""

JOBS = (Job("runs to wake", wake_due, workers_only=False),)
"""Done before the search for runs."""
COUNT_USE = Job("runs to count", count_ended_runs, parts=4)
"""The limit matters after an upgrade, when all earlier runs are uncounted."""


class Sweeper:
    """Looks for runs and due work every second, and after `turn_away` when there is capacity again.

    It runs on the event loop of its worker. The worker of a single command executes only its own
    runs, and does no jobs with `Job.workers_only`.
    """

    def __init__(self, worker: Resources, take: Callable[[str], None]) -> None:
        """Create the sweeper. `take` executes a run that was found."""
        self._worker = worker
        self._take = take
        self._is_of_pool = worker.executor == POOL
        self._look_now = asyncio.Event()
        self._turned_away = False
        self._jobs = feature_jobs()
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._ends = EndTeller(worker.database)
        self._heartbeat = WorkerHeartbeat(
            worker.database, worker.name, worker.capacity, lambda: worker.running
        )
        self._task = asyncio.get_running_loop().create_task(self._sweep())

    def turn_away(self) -> None:
        """Record that there was no capacity for a run, so that the sweeper finds it later."""
        self._turned_away = True

    def has_room(self) -> None:
        """Record that there is capacity again, because a run has ended or parked."""
        if self._turned_away:
            self._look_now.set()

    def look_soon(self) -> None:
        """Check soon, because one of several machines claims nothing before its first check."""
        self._look_now.set()

    def begin_to_close(self) -> None:
        """Accept no new work."""
        self._task.cancel()

    async def close(self) -> None:
        await asyncio.gather(self._task, return_exceptions=True)
        await self.tell_ends()
        if self._is_of_pool:
            await self._heartbeat.close()
        else:
            await self._heartbeat.leave_counts()

    async def tell_ends(self) -> None:
        """Notify features of all runs that have ended so far."""
        await self._ends.finish()

    async def _sweep(self) -> None:
        dead = self._worker.dead
        while True:
            if dead and await self._end_leases(dead):
                dead = ()
                self._look_now.set()
            try:
                async with asyncio.timeout(QUEUE_SWEEP_SECONDS):
                    await self._look_now.wait()
            except TimeoutError:
                pass  # the periodic check
            self._look_now.clear()
            try:
                await self._look()
            except Exception:
                # If this check ended with an error, the worker would find no runs, and nobody would
                # notice.
                logger.exception("the look for runs failed, next try in %g s", QUEUE_SWEEP_SECONDS)

    async def _look(self) -> None:
        await self._worker.look_after_membership()
        if self._is_of_pool:
            await self._heartbeat.look()
        await self._do(JOBS)
        if self._is_of_pool:
            await self._look_for_parts()
        self._ends.look()
        if self._is_of_pool:
            self._worker.pruner.look()
        await self._find_runs()
        await self._do((*self._jobs, COUNT_USE))

    async def _end_leases(self, dead: Collection[str]) -> bool:
        """End the leases of dead processes. Return False if this must be tried again."""
        if not FINDS_SANDBOXES:
            return True
        run, name = self._worker.database.run, self._worker.name
        try:
            # Use one transaction for each run, so that no other run's clock is locked.
            mine = [
                (run_id, fence)
                for run_id, fence, holder in await run(leases_of, dead)
                if await run(inherit_lease, run_id, fence, holder, name)
            ]
            if mine:
                # Invariant 1: no sandbox of a driver may exist after its lease.
                await self._worker.in_thread(
                    kill_marked, [run_marker(run_id) for run_id, _ in mine]
                )
                for run_id, fence in mine:
                    await run(settle_inherited, run_id, fence, name)
                logger.warning("ended %d leases of dead workers", len(mine))
        except DatabaseError as error:
            self._failed("runs of dead workers", error)
            return False
        except SandboxError as error:
            logger.warning("runs of dead workers wait until their leases expire: %s", error)
        return True

    async def _do(self, jobs: Iterable[Job]) -> None:
        """Do the due jobs, one after the other. A job that fails does not prevent the others."""
        for job in jobs:
            now = time.monotonic()
            if (job.workers_only and not self._is_of_pool) or now < self._due.get(job.name, 0.0):
                continue
            if job.every > QUEUE_SWEEP_SECONDS:
                self._due[job.name] = now + job.every
            try:
                for _ in range(job.parts):
                    if not await self._worker.database.run(job.run):
                        break
                self._failures.pop(job.name, None)
            except DatabaseError as error:
                self._failed(job.name, error)
            except Exception:
                pause = self._pause_after_failure(job.name, job.every)
                logger.exception(
                    "the periodic job for %s failed, next try in %g s", job.name, pause
                )

    def _pause_after_failure(self, name: str, every: float) -> float:
        """Return the seconds until the next try of a failed job, and record its time.

        The pause doubles with each failure in a row, up to `LONGEST_PAUSE_SECONDS`.
        """
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        pause = max(every, QUEUE_SWEEP_SECONDS) * 2.0 ** min(failures, 20)
        pause = max(every, min(pause, LONGEST_PAUSE_SECONDS))
        self._due[name] = time.monotonic() + pause
        return pause

    async def _look_for_parts(self) -> None:
        for part in self._worker.parts:
            if time.monotonic() < self._due.get(part.finds, 0.0):
                continue
            try:
                await self._worker.database.run(part.look)
                self._failures.pop(part.finds, None)
            except DatabaseError as error:
                self._failed(part.finds, error)
            except Exception:
                pause = self._pause_after_failure(part.finds, QUEUE_SWEEP_SECONDS)
                logger.exception("looking for %s failed, next try in %g s", part.finds, pause)

    async def _find_runs(self) -> None:
        """Find runs without a driver: queued ones immediately, lost ones after their lease."""
        worker = self._worker
        room = worker.capacity - worker.running
        if worker.waits_for_room() or room <= 0 or not worker.may_claim():
            return
        share = -(-room // SWEEP_SHARE)
        try:
            found = await worker.database.run(orphaned_runs, worker.executor, share, worker.member)
        except DatabaseError as error:
            self._failed("runs", error)
            return
        self._turned_away = self._turned_away and len(found) == share
        count_found(len(found))
        for run_id in found:
            self._take(run_id)

    def _failed(self, what: str, error: DatabaseError) -> None:
        logger.warning("cannot look for %s, next try in %g s: %s", what, QUEUE_SWEEP_SECONDS, error)
        self._worker.database_failed(error)


class WorkerHeartbeat:
    """Heartbeat of a worker on its event loop: if the loop is blocked, there is no heartbeat.

    `driven` returns the number of runs that the process executes now.
    """

    def __init__(
        self, database: Database, name: str, capacity: int, driven: Callable[[], int]
    ) -> None:
        self._database = database
        self._reporter = Reporter(ProcessKind.WORKER, name, capacity)
        self._driven = driven
        self._next = 0.0

    async def look(self) -> None:
        """Send the heartbeat if one is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PROCESS_HEARTBEAT_SECONDS
        try:
            await self._database.run(self._reporter.report, self._driven())
        except DatabaseError as error:
            logger.warning("a worker could not say that it lives: %s", error)

    async def close(self) -> None:
        """Record that the worker has ended."""
        try:
            await self._database.run(self._reporter.retire)
        except DatabaseError as error:
            logger.warning("a worker could not say that it ends: %s", error)

    async def leave_counts(self) -> None:
        """Add the counters of this process to the stored sums, if it has no row of its own.

        Call this at the end of the process. Logs an error of the database.
        """
        try:
            await self._database.run(leave_counts)
        except DatabaseError as error:
            logger.warning("cannot store what this process has counted: %s", error)
