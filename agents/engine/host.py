"""Where runs are driven: one event loop in a thread of this process, with many drivers on it.

A worker's task only hands over a run's id and returns. So two worker processes drive many runs,
and a wake-up is taken while others run for hours.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from django.db import DatabaseError, connection

from agents.conf import vel_settings
from agents.disk_space import is_used_up, shortage, why_waiting
from agents.engine.courier import Courier
from agents.engine.database import Database
from agents.engine.deltas import DeltaFlusher, DeltaStream
from agents.engine.drive import drive
from agents.engine.errors import FenceLost, StopReason
from agents.engine.finish import fail_run
from agents.engine.handle import RunHandle
from agents.engine.heartbeat import Heartbeat
from agents.engine.journal_rows import Writer
from agents.engine.lease import hand_back, writer_of
from agents.engine.membership import Membership
from agents.engine.pruner import Pruner
from agents.engine.sweeper import Sweeper
from agents.engine.watching import flush_spans
from agents.guards.registry import guardrails, hook_calls
from agents.ids import own_executor
from agents.middleware.custom.registered import registered_tools
from agents.models import POOL
from agents.providers.base import Provider
from agents.providers.registry import get_provider
from agents.services.host_membership import HostRefused, refuse_nameless
from agents.services.model_servers import settings_of
from agents.services.placement import Member
from agents.services.wake import drive_here

logger = logging.getLogger(__name__)

T = TypeVar("T")

TOOL_THREADS = 64
"""Blocking tool calls that run at once in a process; more wait for a thread."""


class Host:
    """Drives runs in this process.

    `executor` says which runs it may claim: those of the pool, or its own. `capacity` is how many
    at once; what is over it is left to other processes, and looked for again when there is room.
    `on_database_error` is called on the loop each time the database fails a driver or a look, and
    `on_disk_full` when runs begin to wait for room on the disk, with what to tell people.
    `suffix` is the end of the name of this process, `CLUSTER-NUMBER` for a worker. `dead` contains
    the suffixes of dead workers and the names of dead clusters: this host ends their leases.
    `on_claim` is called once, when this process has claimed a run.

    Raises `ImproperlyConfigured` if a guardrail, hook or tool of the settings cannot be used.
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
        for registered in (guardrails, hook_calls, registered_tools):
            registered()
        self.executor = executor
        self._on_database_error = on_database_error
        self._on_disk_full = on_disk_full
        self._waits_for_room = False
        self._on_claim = on_claim
        self.dead = dead
        self.capacity = capacity or vel_settings().RUNS_PER_WORKER
        self.name = own_executor(suffix)
        self.threads = ThreadPoolExecutor(TOOL_THREADS, thread_name_prefix="vel-tool")
        self.courier = Courier()
        self.pruner = Pruner()
        self._handles: dict[str, RunHandle] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._providers: dict[str, Provider] = {}
        self._ready = threading.Event()
        self._stopped = threading.Event()
        self.membership: Membership | None = None
        self._refusal: HostRefused | None = None
        self._draining = False
        self._grace = 10.0
        # Not a daemon: the process lives until its runs have been handed back.
        self._thread = threading.Thread(target=self._run, name="vel-engine")

    # From other threads -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the loop and wait until it takes runs.

        Raises `HostRefused` for a process that does not say which of several hosts it is on.
        """
        self._thread.start()
        self._ready.wait()
        if self._refusal is not None:
            self.stop()
            raise self._refusal
        if self.executor != POOL:
            drive_here(self.executor, self.submit)

    def submit(self, run_id: str) -> None:
        """Drive a run if it is to be had. Returns at once."""
        if not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self.take, run_id)

    def ask(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Run a function of rows in a transaction, after what was asked for before it."""
        job = self.database.run(function, *arguments)
        return asyncio.run_coroutine_threadsafe(job, self._loop)

    def tell_ends(self) -> None:
        """Tell hooks of all runs that have ended by now. Blocks until they have returned."""
        asyncio.run_coroutine_threadsafe(self._sweeper.tell_ends(), self._loop).result()

    def stop(self, grace: float = 10.0) -> None:
        """Drain: steps under way have `grace` seconds to end, then the runs are handed back."""
        self._grace = grace
        if self.executor != POOL:
            drive_here(self.executor, None)
        if self._thread.is_alive() and not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self._drain.set)
        self._thread.join()

    @property
    def running(self) -> int:
        """How many runs it drives now."""
        return len(self._tasks)

    @property
    def member(self) -> Member | None:
        """In whose name this process claims runs; None where there is one machine."""
        return self.membership.member if self.membership is not None else None

    # For drivers ------------------------------------------------------------------------------

    def holds(self, handle: RunHandle, since: float) -> None:
        """From here on the heartbeat renews the lease, which began at `since` (monotonic)."""
        self.heartbeat.watch(handle, since)
        if self._on_claim is not None:
            self._on_claim()
            self._on_claim = None

    def database_failed(self, error: DatabaseError) -> None:
        """Tell whoever has asked that a run was left, or none was found, for this."""
        if self._on_database_error is not None:
            self._on_database_error(error)

    def provider(self, name: str) -> Provider:
        """This loop's client of a model API. Raises `ProviderError`."""
        if name not in self._providers:
            wanted = replace(settings_of(name), scripts_dir=self._scripts_dir())
            self._providers[name] = get_provider(name, wanted)
        return self._providers[name]

    def _scripts_dir(self) -> Path | None:
        """Agents of the pool are anybody's; a program's own are of who can read its files."""
        return vel_settings().SCRIPTS_DIR if self.executor == POOL else Path("/")

    def deltas(self, writer: Writer) -> DeltaStream:
        return DeltaStream(self._flusher, writer)

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._loop.run_in_executor(self.threads, function, *arguments)

    async def try_hand_back(self, handle: RunHandle) -> None:
        """Give a run up after a fault of the database, if that answers again."""
        try:
            await self.database.run(partial(hand_back, lost=True), await self._writer(handle))
        except (DatabaseError, FenceLost) as error:
            # Nothing is lost: the lease runs out.
            logger.warning(
                "the run was not handed back: %s", error, extra={"run_id": handle.run_id}
            )

    async def try_fail(self, handle: RunHandle) -> None:
        """End a run whose driving raised what nothing here expects."""
        try:
            await self.database.run(self._fail, await self._writer(handle))
        except (DatabaseError, FenceLost) as error:
            logger.warning("the run was not ended: %s", error, extra={"run_id": handle.run_id})

    async def _writer(self, handle: RunHandle) -> Writer:
        return await self.database.run(writer_of, handle.run_id, handle.fence)

    @staticmethod
    def _fail(writer: Writer) -> None:
        message = "Vel itself failed while it drove this run; the worker's log says how."
        fail_run(writer, "internal_error", message, 0, retryable=True)

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
        self._sweeper = Sweeper(self)
        await self._find_its_host()
        self._ready.set()
        try:
            await self._wait_for_end()
        finally:
            self._draining = True
            self.courier.close()
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
            # All block for a moment; nothing else is left on the loop.
            flush_spans()
            self.courier.join()
            self.pruner.join()
            self.heartbeat.stop()
            self.database.close()

    async def _end_threads(self) -> None:
        """Wait for the threads of tools, with this loop running.

        A thread whose call was given up may still ask the database, which needs the loop. At the
        end of a program no other thread can be started that would wait.
        """
        self.threads.shutdown(wait=False, cancel_futures=True)
        while any(thread.is_alive() for thread in self.threads._threads):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def _find_its_host(self) -> None:
        if self.executor == POOL and vel_settings().HOST:
            self.membership = Membership(self.database, self.in_thread)
        elif not vel_settings().HOST and connection.vendor == "postgresql":
            try:
                await self.database.run(refuse_nameless)
            except HostRefused as refusal:
                self._refusal = refusal
            except DatabaseError as error:
                logger.warning("looking for other hosts failed: %s", error)

    async def _wait_for_end(self) -> None:
        """Until `stop`, or until the main thread has ended without it."""
        main = threading.main_thread()
        while not self._drain.is_set() and main.is_alive():
            try:
                async with asyncio.timeout(0.2):
                    await self._drain.wait()
            except TimeoutError:
                continue

    def take(self, run_id: str) -> None:
        """Drive a run if there is room."""
        if self._draining or not self.may_claim():
            return
        if run_id in self._tasks or len(self._tasks) >= self.capacity or self.waits_for_room():
            # A run that is woken in the moment of its parking is still in `_tasks`.
            self._sweeper.turn_away()
            return
        handle = self._handles[run_id] = RunHandle(run_id)
        task = self._tasks[run_id] = self._loop.create_task(
            drive(self, handle), name=f"run {run_id}"
        )
        task.add_done_callback(lambda _: self._let_go(run_id))

    def waits_for_room(self) -> bool:
        """Whether the disk is so full that runs wait. Told once each time that it becomes so."""
        waits = is_used_up()
        if waits and not self._waits_for_room:
            logger.warning("runs wait for disk space: %s", shortage())
            if self._on_disk_full is not None:
                self._on_disk_full(why_waiting())
        elif self._waits_for_room and not waits:
            logger.warning("there is room on the disk again: runs continue")
        self._waits_for_room = waits
        return waits

    def may_claim(self) -> bool:
        """Whether the host, if it is one of several, lives and is not drained."""
        if self.membership is None:
            return self._refusal is None
        return self.membership.member is not None and not self.membership.is_draining

    async def _stop_all(self) -> None:
        """What is driven here is another host's by now."""
        for handle in self._handles.values():
            handle.stop(StopReason.LEASE_LOST)
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def look_after_membership(self) -> None:
        """Say that the host lives, and learn whether it is drained or was declared dead."""
        if self.membership is None:
            return
        await self.membership.look(self._stop_all)
        if self.membership.is_draining:
            for handle in self._handles.values():
                handle.draining = True
            self.membership.give_away()

    def _let_go(self, run_id: str) -> None:
        handle = self._handles.pop(run_id)
        del self._tasks[run_id]
        self.heartbeat.forget(handle)
        if handle.fence:  # it was driven here, so there is room now
            self._sweeper.has_room()

    def _lost(self, writer: Writer) -> None:
        handle = self._handles.get(writer.run_id)
        # Text of a driver that has let go may still come when this process drives the run again.
        if handle is not None and handle.fence == writer.fence:
            handle.stop(StopReason.LEASE_LOST)

    async def _hand_all_back(self) -> None:
        """Let each driver finish its step, then stop those that take too long."""
        for handle in self._handles.values():
            handle.draining = True
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=self._grace)
        for handle in self._handles.values():
            handle.stop(StopReason.DRAIN)
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))
