"""Notification of features about runs that have ended, in this or another process."""

from __future__ import annotations

import asyncio
import logging

from django.db import DatabaseError

from agents.engine.process.watching import tell_spans
from agents.engine.storage.database import Database
from agents.services.runs.ends import (
    end_listeners,
    forget_ended_run,
    somebody_wants_ends,
    take_ended_run,
)

logger = logging.getLogger(__name__)


class EndTeller:
    """Notifies features of runs that have ended, one run after the other in a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Notify features of ended runs in the background."""
        if somebody_wants_ends() and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._tell_all())

    async def finish(self) -> None:
        """Notify features of all ended runs, and wait for it.

        A process of one command exits right after its run.
        """
        if self._task is not None:
            await self._task
        self.look()
        if self._task is not None:
            await self._task

    async def _tell_all(self) -> None:
        try:
            while (found := await self._database.run(take_ended_run)) is not None:
                row, run = found
                await tell_spans(self._database, run)
                for listener in end_listeners():
                    await listener.run_ended(run)
                await self._database.run(forget_ended_run, row)
        except DatabaseError as error:
            # The row still exists, so the notification will be due again.
            logger.warning("notifying of ended runs failed: %s", error)
        except Exception:  # of a feature's listener
            logger.exception("notifying of ended runs failed; it is tried again")
