"""A worker's sign of life: from its loop, so that a loop which stands still gives none."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import DatabaseError

from agents.engine.database import Database
from agents.models import ProcessKind
from agents.services.processes import BEAT_SECONDS, Reporter, leave_counts

logger = logging.getLogger(__name__)


class Beat:
    """`driven` says how many runs the process drives at the moment."""

    def __init__(
        self, database: Database, name: str, capacity: int, driven: Callable[[], int]
    ) -> None:
        self._database = database
        self._reporter = Reporter(ProcessKind.WORKER, name, capacity)
        self._driven = driven
        self._next = 0.0

    async def look(self) -> None:
        """Write the row if that is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + BEAT_SECONDS
        try:
            await self._database.run(self._reporter.report, self._driven())
        except DatabaseError as error:
            logger.warning("a worker could not say that it lives: %s", error)

    async def close(self) -> None:
        """Say that it ends."""
        try:
            await self._database.run(self._reporter.retire)
        except DatabaseError as error:
            logger.warning("a worker could not say that it ends: %s", error)

    async def leave_counts(self) -> None:
        """Store what a process without a row has counted, at its end."""
        try:
            await self._database.run(leave_counts)
        except DatabaseError as error:
            logger.warning("cannot store what this process has counted: %s", error)
