"""Renewal of leases and detection of cancel requests, independent of the drivers.

Invariant 1: a driver that cannot renew its lease stops itself and kills its processes, before the
lease expires and another driver may start. Renewal has its own thread and may wait for the database
for any time. The check for overdue leases is on the event loop, which never waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, close_old_connections, connection

from agents.engine.errors import Stopped, StopReason
from agents.engine.storage.database import use_long_lived_connection
from agents.engine.storage.lease import cancelled_among, renew_leases
from agents.settings import WorkerSettings


class RunHandle:
    """One run that this process executes. Use all methods on the event loop."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.fence = 0
        self.stopping: StopReason | None = None
        self.draining = False
        self._stretches: dict[asyncio.Task[Any], bool] = {}
        """By task, whether it is interrupted. Each tool call runs in its own task, and the driver
        waits for them."""

    def stop(self, reason: StopReason) -> None:
        """Interrupt the driver where it waits. The first reason stays, unless the lease is lost."""
        if self.stopping is None or reason is StopReason.LEASE_LOST:
            self.stopping = reason
        for task, is_interrupted in self._stretches.items():
            if not is_interrupted:
                self._stretches[task] = True
                task.cancel()

    def check(self) -> None:
        """Raise `Stopped` if the driver must not start another step."""
        if self.stopping is not None:
            raise Stopped(self.stopping)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Make `stop` take effect immediately in this block, where it raises `Stopped`.

        Outside of such a block, the driver writes rows, and must not be interrupted in a
        transaction. Blocks of one task can be nested. Then a stop raises `CancelledError`, and only
        the outermost block converts it to `Stopped`: code in between must not take the stop for an
        error. Several tasks may be in blocks at the same time: a stop interrupts each of them.
        """
        self.check()
        task = asyncio.current_task()
        assert task is not None
        if task in self._stretches:
            yield
            return
        self._stretches[task] = False
        try:
            yield
        except asyncio.CancelledError:
            if not self._stretches[task]:
                raise
            task.uncancel()
            assert self.stopping is not None
            raise Stopped(self.stopping) from None
        finally:
            is_interrupted = self._stretches.pop(task)
            if is_interrupted and task.cancelling():
                # The block ended at the same time, normally or with another error.
                task.uncancel()
        if is_interrupted:
            self.check()


logger = logging.getLogger(__name__)

CANCEL_POLL_SECONDS = 0.25
OVERDUE_POLL_SECONDS = 0.25
MARGIN = 1 / 6
"""The part of a lease before its end at which a driver gives up: the last 5 of 30 seconds."""


class Heartbeat:
    """Renews the leases of watched runs, and stops a driver that must not continue.

    Use it on its event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: dict[str, RunHandle] = {}
        self._renewed: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._overdue_timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._work, name="vel-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._give_up_overdue()

    def stop(self) -> None:
        if self._overdue_timer is not None:
            self._overdue_timer.cancel()
        self._stop.set()
        self._thread.join()

    def watch(self, handle: RunHandle, since: float) -> None:
        """Watch a run whose lease started at `since`, in seconds of the monotonic clock."""
        with self._lock:
            self._watched[handle.run_id] = handle
            self._renewed[handle.run_id] = since

    def forget(self, handle: RunHandle) -> None:
        with self._lock:
            if self._watched.get(handle.run_id) is handle:
                del self._watched[handle.run_id]
                del self._renewed[handle.run_id]

    def _work(self) -> None:
        use_long_lived_connection()
        settings = WorkerSettings.now()
        last = time.monotonic()
        while not self._stop.wait(CANCEL_POLL_SECONDS):
            with self._lock:
                watched = dict(self._watched)
            try:
                if watched:
                    for run_id in cancelled_among(list(watched)):
                        self._tell(watched[run_id], StopReason.CANCEL)
                if time.monotonic() - last >= settings.HEARTBEAT_SECONDS:
                    last = time.monotonic()
                    self._renew(watched)
            except DatabaseError as error:
                logger.warning(
                    "the heartbeat failed, next try in %g s: %s", CANCEL_POLL_SECONDS, error
                )
                close_old_connections()
            except Exception:
                # If this thread ended, all runs of the process would lose their leases.
                logger.exception("the heartbeat failed, next try in %g s", CANCEL_POLL_SECONDS)
                close_old_connections()
        connection.close()

    def _renew(self, watched: dict[str, RunHandle]) -> None:
        asked = time.monotonic()
        held = renew_leases({run_id: handle.fence for run_id, handle in watched.items()})
        with self._lock:
            for run_id, handle in watched.items():
                if self._watched.get(run_id) is not handle:
                    continue
                if run_id in held:
                    self._renewed[run_id] = asked
                else:
                    self._tell(handle, StopReason.LEASE_LOST)

    def _give_up_overdue(self) -> None:
        limit = time.monotonic() - WorkerSettings.now().LEASE_SECONDS * (1 - MARGIN)
        with self._lock:
            overdue = [
                self._watched[run_id] for run_id, when in self._renewed.items() if when < limit
            ]
        for handle in overdue:
            handle.stop(StopReason.LEASE_LOST)
        self._overdue_timer = self._loop.call_later(OVERDUE_POLL_SECONDS, self._give_up_overdue)

    def _tell(self, handle: RunHandle, reason: StopReason) -> None:
        self._loop.call_soon_threadsafe(handle.stop, reason)
