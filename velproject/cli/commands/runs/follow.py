"""Display of a run and its subagents at the terminal. Signals cancel the run."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any, NoReturn, Protocol

from django.db import DatabaseError, connection

from agents.doors.cli.errors import HUNG_UP, INTERRUPTED, TERMINATED
from agents.events.catalogue.messages import StepCompleted
from agents.events.catalogue.runs import RUN_ENDS, RunSuspended
from agents.events.catalogue.tool_calls import ToolCompleted, ToolFailed
from agents.events.read import read_events
from agents.events.tree import follow_tree
from agents.services.runs.control import cancel_run
from agents.states import WaitReason
from velproject.signals import handling

PATIENCE = 2.0
"""Seconds that a run gets to end after Ctrl-C, and the worker to stop."""
DATABASE_PATIENCE = 8.0
"""Seconds that a database may fail before the command ends; a restart takes less."""
STOPPED = "stopped at the terminal"
_PROGRESS = (StepCompleted.type, ToolCompleted.type, ToolFailed.type)
_STOPS = (RunSuspended.type, *RUN_ENDS)

Show = Callable[[dict[str, Any]], None]


class Keys(Protocol):
    """The keys of a person during a run, in a session at a terminal."""

    def watched(self, pressed: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Call `pressed` in the running loop when the person wants to cancel the run."""

    def restore(self) -> None:
        """Give the terminal the mode that it had before `watched`."""

    def forget(self) -> None:
        """Drop the unfinished line and restore the terminal, because a question comes."""


class Watch:
    """Shows the events of one run until it ends, also after pauses.

    Ctrl-C, SIGTERM and SIGHUP cancel the run, or only stop watching.
    """

    def __init__(
        self,
        run_id: str,
        positions: Mapping[str, int],
        show: Show,
        by: str | None,
        must_pause: Callable[[], bool],
        keys: Keys | None = None,
    ) -> None:
        """Prepare to show a run.

        Args:
            positions: For each run, the sequence number of the last event that was already shown.
            by: The person who cancels the run on a signal. With None, a signal only stops watching.
            must_pause: Called in a thread after a subagent has stopped; returns whether a person
                has to act.
            keys: Watches the keys with which a person cancels the run.
        """
        self._run_id = run_id
        self._positions = dict(positions)
        self._show = show
        self._by = by
        self._must_pause = must_pause
        self._keys = keys
        self._wish: asyncio.Future[int] | None = None
        self._failing_since: float | None = None

    def database_failed(self, error: DatabaseError) -> None:
        """Record that the run did not continue because of `error`. The worker's thread calls this.

        If the database fails for `DATABASE_PATIENCE`, `until_pause` raises the error.
        """
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        if self._wish is not None and now - self._failing_since >= DATABASE_PATIENCE:
            self._wish.get_loop().call_soon_threadsafe(_give_up, self._wish, error)

    def catch_up(self, run_ids: Sequence[str]) -> None:
        """Show the stored events of these runs that have not been shown yet."""
        for run_id in run_ids:
            while events := read_events(run_id, after=self._positions.get(run_id, 0)):
                for event in events:
                    self._positions[run_id] = event["seq"]
                    self._show({"run_id": run_id, **event})

    async def until_pause(self) -> int | None:
        """Show events until the run ends or needs a person, also for one of its subagents.

        Returns None, or the exit code after a signal.

        Raises:
            DatabaseError: The database has failed for too long.
        """
        loop = asyncio.get_running_loop()
        wish: asyncio.Future[int] = loop.create_future()
        self._wish = wish
        codes: dict[int, int] = {
            signal.SIGINT: INTERRUPTED,
            signal.SIGTERM: TERMINATED,
            signal.SIGHUP: HUNG_UP,
        }
        keys = (
            self._keys.watched(lambda: _wish_once(wish))
            if self._keys is not None
            else nullcontext()
        )
        async with handling(codes, lambda number: self._signal(wish, codes[number])), keys:
            code = await self._until_pause(wish)
        if code is None and wish.done() and wish.exception() is None:
            # The signal came when the run had just ended or paused.
            if self._by is not None:
                await asyncio.to_thread(_cancel, self._run_id, self._by)
            return wish.result()
        return code

    def _signal(self, wish: asyncio.Future[int], code: int) -> None:
        """Request the cancellation of the run at the first signal. At the second, exit at once."""
        if wish.done():
            if self._keys is not None:
                self._keys.restore()
            leave_at_once(code)
        wish.set_result(code)

    async def _until_pause(self, wish: asyncio.Future[int]) -> int | None:
        following = asyncio.get_running_loop().create_task(self._follow())
        try:
            waiting: set[asyncio.Future[Any]] = {following, wish}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
                return None
            if self._by is not None and wish.exception() is None:
                await asyncio.to_thread(_cancel, self._run_id, self._by)
                await asyncio.wait([following], timeout=PATIENCE)
            if not following.done():
                following.cancel()
                await asyncio.wait([following])
            return wish.result()
        finally:
            self._wish = None

    async def _follow(self) -> None:
        """Show events. If the run is cancelled, wait a moment for its subagents to end."""
        try:
            async with asyncio.timeout(None) as limit:
                await self._show_until_pause(limit)
        except TimeoutError:
            return

    async def _show_until_pause(self, limit: asyncio.Timeout) -> None:
        async with aclosing(follow_tree(self._run_id, positions=self._positions)) as events:
            async for stored in events:
                event = stored.as_dict()
                self._positions[stored.run_id] = stored.seq
                if stored.type in _PROGRESS:
                    self._failing_since = None
                self._show(event)
                is_own = stored.run_id == self._run_id
                if is_own and stored.type in RUN_ENDS:
                    limit.reschedule(asyncio.get_running_loop().time() + PATIENCE)
                elif await self._ends_here(event, is_own):
                    return

    async def _ends_here(self, event: dict[str, Any], is_own: bool) -> bool:
        if is_own and _waits_for_person(event):
            return True
        return event["type"] in _STOPS and await asyncio.to_thread(self._asks_for_pause)

    def _asks_for_pause(self) -> bool:
        try:
            return self._must_pause()
        finally:
            connection.close()


def _waits_for_person(event: dict[str, Any]) -> bool:
    return event["type"] == RunSuspended.type and event["data"]["reason"] != WaitReason.CHILDREN


def _wish_once(wish: asyncio.Future[int]) -> None:
    if not wish.done():
        wish.set_result(INTERRUPTED)


def _give_up(wish: asyncio.Future[int], error: DatabaseError) -> None:
    if not wish.done():
        wish.set_exception(error)


def leave_at_once(code: int) -> NoReturn:
    """Exit without waiting for the worker's thread. Sandboxes die with this process."""
    sys.stdout.flush()
    os._exit(code)


def _cancel(run_id: str, by: str) -> None:
    try:
        cancel_run(run_id, by=by, reason=STOPPED)
    finally:
        connection.close()
