"""The worker: one event loop in a thread of this process, which executes many runs.

A task of the queue only submits a run's id and returns. So two worker processes can execute many
runs, and wake a run while others run for hours.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from django.db import DatabaseError, connection

from agents.engine.drive import drive
from agents.engine.errors import StopReason
from agents.engine.gate import installed_gate
from agents.engine.process.deltas import DeltaFlusher
from agents.engine.process.heartbeat import Heartbeat, RunHandle
from agents.engine.process.membership import Membership
from agents.engine.process.resources import Resources
from agents.engine.process.sweeper import Sweeper
from agents.engine.process.watching import flush_spans
from agents.engine.storage.database import Database
from agents.engine.storage.journal import Writer
from agents.kernel.chain import check_settings
from agents.middleware.custom.registered import registered_tools
from agents.models import POOL
from agents.services.agent_definitions.settings_places import check_own_process
from agents.services.machines.membership import MachineRefused, refuse_nameless
from agents.services.runs.wake import drive_here
from agents.settings import MachineSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Worker(Resources):
    """Executes runs in this process.

    Raises `ImproperlyConfigured` if a tool or a middleware cannot use its settings. In a process
    that executes only its own runs, an unusable provider, model or directory of skills raises it,
    too. Clusters check these when they start: a worker that replaces a dead one must not depend on
    a directory that is unavailable for a moment.

    Args:
        executor: Which runs it may claim: those of the pool, or those of this program.
        capacity: The number of concurrent runs. Other runs are left to other processes, and looked
            for again when there is capacity.
        on_database_error: Called on the event loop each time the database fails for a driver or a
            check.
        on_disk_full: Called with a message for people when runs start to wait for disk space.
        suffix: The end of this process's name, `CLUSTER-NUMBER` for a worker.
        dead: Suffixes of dead workers and names of dead clusters, whose leases this worker ends.
        on_claim: Called once, when this process has claimed its first run.
    """

    def __init__(
        self,
        executor: str = POOL,
        capacity: int | None = None,
        on_database_error: Callable[[DatabaseError], None] | None = None,
        on_disk_full: Callable[[str], None] | None = None,
        *,
        suffix: str = "",
        dead: Collection[str] = (),
        on_claim: Callable[[], None] | None = None,
    ) -> None:
        check_settings()
        installed_gate()
        registered_tools()
        if executor != POOL:
            check_own_process()
        super().__init__(
            executor,
            capacity,
            on_database_error,
            on_disk_full,
            on_claim,
            suffix,
            dead,
        )
        self._ready = threading.Event()
        self._stopped = threading.Event()
        self._draining = False
        self._grace = 10.0
        # Not a daemon: the process lives until its runs are released.
        self._thread = threading.Thread(target=self._run, name="vel-engine")

    # From other threads -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the event loop, and wait until it accepts runs.

        Raises `MachineRefused` for a process without a host name if there are several hosts.
        """
        self._thread.start()
        self._ready.wait()
        if self._refusal is not None:
            self.stop()
            raise self._refusal
        if self.executor != POOL:
            drive_here(self.executor, self.submit)

    def submit(self, run_id: str) -> None:
        """Execute a run if it is available. Returns immediately."""
        if not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self.take, run_id)

    def ask(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Run a function in a database transaction, after the earlier submissions."""
        job = self.database.run(function, *arguments)
        return asyncio.run_coroutine_threadsafe(job, self._loop)

    def wait_for(self, job: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop. Blocks until the coroutine has ended."""
        return asyncio.run_coroutine_threadsafe(job, self._loop).result()

    def tell_ends(self) -> None:
        """Notify features of all runs that have ended so far. Blocks until they have returned."""
        asyncio.run_coroutine_threadsafe(self._sweeper.tell_ends(), self._loop).result()

    def stop(self, grace: float = 10.0) -> None:
        """Stop: running steps have `grace` seconds to end, then the runs are released."""
        self._grace = grace
        if self.executor != POOL:
            drive_here(self.executor, None)
        if self._thread.is_alive() and not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self._drain.set)
        self._thread.join()

    # On the loop ------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._drain = asyncio.Event()
        self.database = Database(self._loop)
        self._flusher = DeltaFlusher(self._loop, self.database, self._lost)
        self.heartbeat = Heartbeat(self._loop)
        self.heartbeat.start()
        self._sweeper = Sweeper(self, self.take)
        await self._find_its_machine()
        self._ready.set()
        try:
            await self._wait_for_end()
        finally:
            self._draining = True
            for part in self.parts:
                part.close()
            self.pruner.close()
            self._sweeper.begin_to_close()
            await self._hand_all_back()
            await self._sweeper.close()
            if self.membership is not None:
                await self.membership.close()
            for provider in self._providers.values():
                await provider.close()
            await self._end_threads()
            self._stopped.set()
            # All of these block for a moment; the event loop has no other tasks left.
            flush_spans()
            for part in self.parts:
                part.join()
            self.pruner.join()
            self.heartbeat.stop()
            self.database.close()

    async def _end_threads(self) -> None:
        """Wait for the threads of tools while the event loop still runs.

        A thread with an abandoned call may still use the database, which needs the loop. At the end
        of a program, no other thread can be started to wait.
        """
        self.threads.shutdown(wait=False, cancel_futures=True)
        while any(thread.is_alive() for thread in self.threads._threads):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def _find_its_machine(self) -> None:
        if self.executor == POOL and MachineSettings.now().HOST:
            self.membership = Membership(self.database, self.in_thread)
            self._sweeper.look_soon()
        elif not MachineSettings.now().HOST and connection.vendor == "postgresql":
            try:
                await self.database.run(refuse_nameless)
            except MachineRefused as refusal:
                self._refusal = refusal
            except DatabaseError as error:
                logger.warning("looking for other hosts failed: %s", error)

    async def _wait_for_end(self) -> None:
        """Wait until `stop` is called, or until the main thread has ended without calling it."""
        main = threading.main_thread()
        while not self._drain.is_set() and main.is_alive():
            try:
                async with asyncio.timeout(0.2):
                    await self._drain.wait()
            except TimeoutError:
                continue

    def take(self, run_id: str) -> None:
        """Execute a run if there is capacity."""
        if self._draining or not self.may_claim():
            return
        if run_id in self._tasks or len(self._tasks) >= self.capacity or self.waits_for_room():
            # A run that is woken while it parks is still in `_tasks`.
            self._sweeper.turn_away()
            return
        handle = self._handles[run_id] = RunHandle(run_id)
        task = self._tasks[run_id] = self._loop.create_task(
            drive(self, handle), name=f"run {run_id}"
        )
        task.add_done_callback(lambda _: self._let_go(run_id))

    def _let_go(self, run_id: str) -> None:
        handle = self._handles.pop(run_id)
        del self._tasks[run_id]
        self.heartbeat.forget(handle)
        if handle.fence:  # this process executed the run, so there is capacity now
            self._sweeper.has_room()

    def _lost(self, writer: Writer) -> None:
        handle = self._handles.get(writer.run_id)
        # Streamed text of an earlier driver may arrive when this process has the run again.
        if handle is not None and handle.fence == writer.fence:
            handle.stop(StopReason.LEASE_LOST)

    async def _hand_all_back(self) -> None:
        """Let each driver finish its step, then stop the drivers that take too long."""
        for handle in self._handles.values():
            handle.draining = True
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=self._grace)
        for handle in self._handles.values():
            handle.stop(StopReason.DRAIN)
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))
