"""Membership of a process in one of several machines: it joins and sends heartbeats.

If its machine was declared dead, a process stops its runs and their sandboxes, and joins again. On
a drained machine, it releases its runs and transfers its threads to other machines, one after the
other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from django.db import DatabaseError

from agents.engine.storage.database import Database
from agents.services.files.stored_snapshots import StorageFailed
from agents.services.machines.actions import declare_silent_machines, note_stuck
from agents.services.machines.membership import MachineRefused, join_machine, machine_heartbeat
from agents.services.placement import Member
from agents.services.thread_transfer.receiving import discard
from agents.services.thread_transfer.sending import ThreadToSend, next_thread_to_send, send_thread
from agents.settings import MachineSettings
from sandbox.directories.file_lock import LockTimeout
from sandbox.errors import SandboxError

logger = logging.getLogger(__name__)


class Membership:
    """The membership of a process. While `member` is None, the process may not claim runs.

    Use it on the event loop.
    """

    def __init__(self, database: Database, in_thread: Callable[..., Awaitable[Any]]) -> None:
        self.member: Member | None = None
        self.is_draining = False
        self._database = database
        self._in_thread = in_thread
        self._loop = asyncio.get_running_loop()
        self._next = 0.0
        self._lives_since = time.monotonic()
        self._giving: asyncio.Task[None] | None = None

    async def look(self, stop_all: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Send a heartbeat if one is due.

        `stop_all` is called before the process joins, also again after its machine was declared
        dead. It stops the runs of this process.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + MachineSettings.now().HOST_HEARTBEAT_SECONDS
        try:
            await self._heartbeat(stop_all)
        except DatabaseError as error:
            self._lives_since = time.monotonic() + MachineSettings.now().HOST_HEARTBEAT_SECONDS
            logger.warning("the host could not say that it lives: %s", error)
        except MachineRefused as refusal:
            logger.error("%s", refusal)

    async def _heartbeat(self, stop_all: Callable[[], Coroutine[Any, Any, None]]) -> None:
        sign = None
        if self.member is not None:
            sign = await self._database.run(machine_heartbeat, self.member)
        if sign is None:
            if self.member is not None:
                logger.error("this host was declared dead: its runs are others' now")
                self.member = None
            await stop_all()
            self.member = await self._database.run(join_machine)
            self._lives_since = time.monotonic()
            logger.info("this process drives runs of the host %s", self.member.name)
            return
        self.is_draining = sign.is_draining
        await self._declare_silent()

    async def _declare_silent(self) -> None:
        """Declare silent machines dead, if this process reached the database all that time."""
        seconds = MachineSettings.now().HOST_DEAD_AFTER
        if not seconds or time.monotonic() - self._lives_since < seconds:
            return
        for name in await self._database.run(declare_silent_machines, seconds):
            logger.error("the host %s was silent for %g s and counts as dead now", name, seconds)

    def give_away(self) -> None:
        """Transfer the threads of a drained machine, in the background. Returns immediately."""
        if self.is_draining and (self._giving is None or self._giving.done()):
            self._giving = self._loop.create_task(self._give_away())

    async def close(self) -> None:
        """Wait for the current transfer."""
        self.is_draining = False
        if self._giving is not None:
            await asyncio.gather(self._giving, return_exceptions=True)

    async def _give_away(self) -> None:
        """Transfer each thread once, in the order of the ids. Failures are tried again later."""
        after = ""
        while self.is_draining and (member := self.member) is not None:
            try:
                to_send: ThreadToSend | None = await self._database.run(
                    next_thread_to_send, member, after
                )
                if to_send is None:
                    return
                after = to_send.first
                await self._give(to_send, member)
            except DatabaseError as error:
                logger.warning("giving threads away failed: %s", error)
                return

    async def _give(self, to_send: ThreadToSend, member: Member) -> None:
        """Transfer a thread, or store why it stays."""
        thread_id = to_send.first
        try:
            if await self._in_thread(self._send_thread, to_send, member):
                logger.info("thread %s can continue on another host", thread_id)
        except (StorageFailed, LockTimeout, OSError) as error:
            logger.error("thread %s cannot leave this host yet: %s", thread_id, error)
        except SandboxError as error:
            logger.error("thread %s cannot leave this host: %s", thread_id, error)
            await self._database.run(note_stuck, member.name, thread_id, str(error))

    def _send_thread(self, to_send: ThreadToSend, member: Member) -> bool:
        """Store a thread's files and release the thread. Return whether that succeeded.

        Blocks: call this method in a tool thread.
        """
        gone = send_thread(to_send, member, self._call)
        if gone:
            for place in to_send.places:
                discard(place.thread_id)
        return gone

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a transaction from a tool thread, on the event loop's only database connection."""
        job = self._database.run(function, *arguments)
        return asyncio.run_coroutine_threadsafe(job, self._loop).result()
