"""Following one run at the terminal: its events, and signals as wishes to cancel it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, NoReturn

from django.db import DatabaseError, connection

from agents.events.tail import tail
from agents.services.run_control import cancel_run
from velproject.cli.errors import INTERRUPTED, TERMINATED

PATIENCE = 2.0
"""Seconds that a run gets to end after Ctrl-C, and the host to stop."""
DATABASE_PATIENCE = 8.0
"""Seconds that a database may fail before the command ends; a restart takes less."""
STOPPED = "stopped at the terminal"
_PROGRESS = ("step.completed", "tool.completed", "tool.failed")
_FINAL = ("run.completed", "run.failed", "run.cancelled")
_WAITS_FOR_PERSON = ("approval", "budget")


class Watch:
    """Following one run, over pauses, with Ctrl-C and SIGTERM as wishes to cancel it."""

    def __init__(
        self, run_id: str, after: int, show: Callable[[dict[str, Any]], None], by: str | None
    ) -> None:
        """`by` is who cancels the run on a signal; None only stops watching."""
        self._run_id = run_id
        self._after = after
        self._show = show
        self._by = by
        self._wish: asyncio.Future[int] | None = None
        self._failing_since: float | None = None

    def database_failed(self, error: DatabaseError) -> None:
        """From the host's thread: the run did not go on because of `error`."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        if self._wish is not None and now - self._failing_since >= DATABASE_PATIENCE:
            self._wish.get_loop().call_soon_threadsafe(_give_up, self._wish, error)

    async def until_pause(self) -> int | None:
        """Show events until the run ends or waits for a person.

        None, or the exit code when a signal has cancelled the run.
        """
        loop = asyncio.get_running_loop()
        wish: asyncio.Future[int] = loop.create_future()
        self._wish = wish
        codes = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED, signal.SIGHUP: 129}
        for number, code in codes.items():
            loop.add_signal_handler(number, _wish, wish, code)
        following = loop.create_task(self._follow())
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
            for number in codes:
                loop.remove_signal_handler(number)

    async def _follow(self) -> None:
        async with aclosing(tail.follow(self._run_id, after=self._after)) as events:
            async for event in events:
                self._after = event["seq"]
                if event["type"] in _PROGRESS:
                    self._failing_since = None
                self._show(event)
                if event["type"] in _FINAL:
                    return
                if event["type"] == "run.suspended" and (
                    event["data"]["reason"] in _WAITS_FOR_PERSON
                ):
                    return


def _wish(wish: asyncio.Future[int], code: int) -> None:
    """The first signal asks the run to end; the second does not wait for it."""
    if wish.done():
        leave_at_once(code)
    wish.set_result(code)


def _give_up(wish: asyncio.Future[int], error: DatabaseError) -> None:
    if not wish.done():
        wish.set_exception(error)


def leave_at_once(code: int) -> NoReturn:
    """End without waiting for the host's thread. Sandboxes die with this process."""
    sys.stdout.flush()
    os._exit(code)


def _cancel(run_id: str, by: str) -> None:
    try:
        cancel_run(run_id, by=by, reason=STOPPED)
    finally:
        connection.close()
