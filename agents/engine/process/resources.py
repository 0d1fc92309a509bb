"""Resources that all drivers and the sweeper of one process share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from django.db import DatabaseError

from agents.disk_space import is_used_up, shortage, why_waiting
from agents.engine.errors import FenceLost, StopReason
from agents.engine.process.deltas import DeltaFlusher, DeltaStream
from agents.engine.process.heartbeat import Heartbeat, RunHandle
from agents.engine.process.membership import Membership
from agents.engine.process.pruner import Pruner
from agents.engine.storage.database import Database
from agents.engine.storage.finish import fail_run
from agents.engine.storage.journal import Writer
from agents.engine.storage.lease import hand_back, writer_of
from agents.ids import own_executor
from agents.kernel.features import feature_parts
from agents.models import POOL
from agents.providers.base import Provider
from agents.providers.present import PresentProvider
from agents.providers.registry import ProviderSettings, get_provider
from agents.services.agent_definitions.actions import SCRIPTED
from agents.services.agent_definitions.settings_places import settings_of
from agents.services.machines.membership import MachineRefused
from agents.services.placement import Member
from agents.settings import ScriptSettings, WorkerSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")

TOOL_THREADS = 64
"""The number of concurrent blocking tool calls in a process; others wait for a thread."""


class Resources:
    """The database, threads, model clients and runs of a process.

    `Worker` starts and ends them, and documents the arguments. Use them on the event loop, except
    for `in_thread`.
    """

    database: Database
    heartbeat: Heartbeat
    _loop: asyncio.AbstractEventLoop
    _flusher: DeltaFlusher

    def __init__(
        self,
        executor: str,
        capacity: int | None,
        on_database_error: Callable[[DatabaseError], None] | None,
        on_disk_full: Callable[[str], None] | None,
        on_claim: Callable[[], None] | None,
        suffix: str,
        dead: Collection[str],
    ) -> None:
        self.executor = executor
        self._on_database_error = on_database_error
        self._on_disk_full = on_disk_full
        self._waits_for_room = False
        self._on_claim = on_claim
        self.dead = dead
        self.capacity = capacity or WorkerSettings.now().RUNS_PER_WORKER
        self.name = own_executor(suffix)
        self.threads = ThreadPoolExecutor(TOOL_THREADS, thread_name_prefix="vel-tool")
        self.parts = feature_parts()
        self.pruner = Pruner()
        self._handles: dict[str, RunHandle] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._providers: dict[str, PresentProvider] = {}
        self.membership: Membership | None = None
        self._refusal: MachineRefused | None = None

    @property
    def running(self) -> int:
        """The number of runs that this process executes now."""
        return len(self._tasks)

    @property
    def member(self) -> Member | None:
        """The membership with which this process claims runs.

        None with a single machine, and before this machine has joined.
        """
        return self.membership.member if self.membership is not None else None

    def holds(self, handle: RunHandle, since: float) -> None:
        """Renew a lease from now on. It started at `since`, in seconds of the monotonic clock."""
        self.heartbeat.watch(handle, since)
        if self._on_claim is not None:
            self._on_claim()
            self._on_claim = None

    def database_failed(self, error: DatabaseError) -> None:
        """Report a database error to the owner of this worker."""
        if self._on_database_error is not None:
            self._on_database_error(error)

    def provider(self, name: str) -> Provider:
        """Return this event loop's client for a provider. Raises `ProviderError`.

        The client uses the present key, also after the key has changed.
        """
        if name == SCRIPTED:
            return get_provider(name, ProviderSettings(scripts_dir=self._scripts_dir()))
        if name in self._providers:
            self._providers[name].check()
        else:
            self._providers[name] = PresentProvider(name, partial(settings_of, name))
        return self._providers[name]

    def _scripts_dir(self) -> Path | None:
        """Return the directory of scripted models' files; None allows every readable directory."""
        return ScriptSettings.now().SCRIPTS_DIR if self.executor == POOL else Path("/")

    def deltas(self, writer: Writer) -> DeltaStream:
        return DeltaStream(self._flusher, writer)

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._loop.run_in_executor(self.threads, function, *arguments)

    async def try_hand_back(self, handle: RunHandle, fault: str) -> None:
        """Release a run, if the database is available; otherwise its lease expires.

        `fault` is the reason, as a text for people.
        """
        try:
            await self.database.run(partial(hand_back, fault=fault), await self._writer(handle))
        except (DatabaseError, FenceLost) as error:
            # If it is not, the lease expires and the run continues then.
            logger.warning(
                "the run was not handed back: %s", error, extra={"run_id": handle.run_id}
            )

    async def try_fail(self, handle: RunHandle) -> None:
        """Fail a run after an unexpected error of its driver, if the database is available."""
        try:
            await self.database.run(self._fail, await self._writer(handle))
        except (DatabaseError, FenceLost) as error:
            logger.warning("the run was not ended: %s", error, extra={"run_id": handle.run_id})

    async def _writer(self, handle: RunHandle) -> Writer:
        return await self.database.run(writer_of, handle.run_id, handle.fence)

    @staticmethod
    def _fail(writer: Writer) -> None:
        message = "An internal error of Vel ended this run. The worker's log has the details."
        fail_run(writer, "internal_error", message, 0, retryable=True)

    def waits_for_room(self) -> bool:
        """Return whether runs wait because the disk is full. Reports each change once."""
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
        """Return whether this process may claim runs: its machine is alive and not drained."""
        if self.membership is None:
            return self._refusal is None
        return self.membership.member is not None and not self.membership.is_draining

    async def _stop_all(self) -> None:
        """Stop all drivers, because their runs belong to another machine now."""
        for handle in self._handles.values():
            handle.stop(StopReason.LEASE_LOST)
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def look_after_membership(self) -> None:
        """Send the machine's heartbeat, and react if it is drained or was declared dead."""
        if self.membership is None:
            return
        await self.membership.look(self._stop_all)
        if self.membership.is_draining:
            for handle in self._handles.values():
                handle.draining = True
            self.membership.give_away()
