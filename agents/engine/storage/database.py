"""The only access from the event loop to the database.

A single thread runs all transactions of the loop. Waiting writes of drivers share one transaction:
with many runs in a process, this saves most of the commits, and most of the waits for SQLite's
single writer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from django.db import OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

logger = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 16
"""The limit of jobs that share a transaction; with more, the first would wait for the last."""
BUSY_SECONDS = 3
"""The time that the engine's threads wait for SQLite's writer lock in one try."""
IDLE_SECONDS = 15
"""The time after which PostgreSQL ends a transaction of a frozen process: others wait for its
locks, and must get them before the lease of its runs has ended."""
SHARED_LOCK_MS = 250
"""The time that a shared transaction waits for a lock. PostgreSQL looks for deadlocks after 1 s."""
LOCK_TRIES = 6
RECHECK_SECONDS = 2.0
"""The interval of checks whether an idle connection is still open."""


_COLUMNS = {
    # Each column with its table, and whether a new row needs a value for it.
    "sqlite": """
        SELECT tables.name, columns.name,
               columns."notnull" AND columns.dflt_value IS NULL AND NOT columns.pk
        FROM sqlite_master AS tables, pragma_table_xinfo(tables.name) AS columns
        WHERE tables.type = 'table' AND columns.hidden IN (0, 2, 3)
    """,
    "postgresql": """
        SELECT table_name, column_name,
               is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'
        FROM information_schema.columns WHERE table_schema = ANY (current_schemas(false))
    """,
}


@dataclass(slots=True)
class _Job:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: asyncio.Future[Any]
    shared: bool
    result: Any = None
    error: BaseException | None = None


_thread = threading.local()


def use_long_lived_connection() -> None:
    """Give this thread a connection that lives as long as the thread, with short lock waits.

    Call this before the thread's first query. The connection is not from a pool, even if the
    project has one.
    """
    given = connection.settings_dict
    options = {key: value for key, value in given["OPTIONS"].items() if key != "pool"}
    connection.settings_dict = {**given, "OPTIONS": options, "CONN_MAX_AGE": None}
    _thread.is_engine = True


def _set_patience(*, connection: BaseDatabaseWrapper, **kwargs: object) -> None:
    """Set the time limits of every connection that Django opens in this thread.

    Django opens another one if a rollback fails.
    """
    if not getattr(_thread, "is_engine", False):
        return
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        else:
            cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_SECONDS * 1000}")


connection_created.connect(_set_patience, dispatch_uid="agents.engine.storage.database")


def stored_columns() -> dict[str, dict[str, bool]]:
    """Return the columns of each table, each with whether a new row needs a value for it."""
    found: dict[str, dict[str, bool]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS[connection.vendor])
        for table, column, needs_value in cursor.fetchall():
            found.setdefault(table, {})[column] = bool(needs_value)
    return found


def is_lock_error(error: BaseException) -> bool:
    """Return whether SQLite gave up waiting for a lock. Nothing was written: you can try again."""
    if connection.vendor != "sqlite" or not isinstance(error, OperationalError):
        return False
    return "locked" in str(error) or "busy" in str(error)


class Database:
    """Runs functions in transactions on a separate thread, in the order of their calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._checked = 0.0
        self._thread = threading.Thread(target=self._work, name="vel-database", daemon=True)
        self._thread.start()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function(*arguments)` in its own transaction and return its result.

        This cannot be cancelled: a submitted transaction always runs, and a cancelled caller still
        waits for it. If SQLite is locked, the function is called again, so it must only change
        rows. Raises the exception of the function, which rolls the transaction back.
        """
        return await self._ask(function, arguments, shared=False)

    async def share(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function like `run`, but possibly in one transaction with other functions.

        Only for functions that lock no rows except the clock of their run. Before a function that
        locks runs or threads, other functions of the transaction would have locked clocks, against
        the order of all locks (run, clock, thread). On PostgreSQL this can cause a deadlock. If one
        function fails, all functions of the transaction run again, each alone.
        """
        return await self._ask(function, arguments, shared=True)

    def submit(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Submit a function like `share`, without waiting. Later submissions cannot overtake it."""
        return self._submit(function, arguments, shared=True)

    def _submit(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, shared: bool
    ) -> asyncio.Future[T]:
        job = _Job(function, arguments, self._loop.create_future(), shared)
        self._jobs.put(job)
        return job.future

    async def _ask(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, shared: bool
    ) -> T:
        future = self._submit(function, arguments, shared=shared)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            if (error := future.exception()) is not None:
                logger.warning("a transaction failed whose caller is gone: %s", error)
            raise

    def close(self) -> None:
        """Finish the submitted jobs and close the connection. Blocks."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        use_long_lived_connection()
        closing = False
        while not closing:
            jobs: list[_Job] = []
            item = self._jobs.get()
            while True:
                if item is None:
                    closing = True
                    break
                jobs.append(item)
                if len(jobs) == BATCH:
                    break
                try:
                    item = self._jobs.get_nowait()
                except Empty:
                    break
            for shared, neighbours in groupby(jobs, key=lambda job: job.shared):
                part = list(neighbours)
                if not shared or len(part) == 1 or not self._try_together(part):
                    for job in part:
                        self._alone(job)
                self._loop.call_soon_threadsafe(_deliver, part)
        connection.close()

    def _try_together(self, jobs: list[_Job]) -> bool:
        try:
            self._check_connection()
            with transaction.atomic():
                _give_way()
                for job in jobs:
                    job.result = job.function(*job.arguments)
        except Exception:  # noqa: BLE001  # each job gets its own error when it runs alone
            self._checked = 0.0
            for job in jobs:
                job.result = None
            return False
        return True

    def _alone(self, job: _Job) -> None:
        for attempt in range(1, LOCK_TRIES + 1):
            try:
                self._check_connection()
                with transaction.atomic():
                    job.result = job.function(*job.arguments)
                job.error = None
                return
            except BaseException as error:  # noqa: BLE001  # the caller of the job gets the error
                self._checked = 0.0
                job.error = error
                if attempt == LOCK_TRIES or not is_lock_error(error):
                    return
                logger.warning("the database is locked; trying again", extra={"attempt": attempt})

    def _check_connection(self) -> None:
        now = time.monotonic()
        if now - self._checked >= RECHECK_SECONDS:
            connection.close_if_unusable_or_obsolete()
            self._checked = now


def _give_way() -> None:
    """Make this transaction fail early instead of in a deadlock; its jobs then run alone.

    The transaction locks clocks of several runs in the order of its jobs, and a process that
    cancels a run with its subagents locks them, too.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {SHARED_LOCK_MS}")


def _deliver(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future.cancelled():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
