"""The handle of a running driver: stop it from outside, and check its lease."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agents.engine.errors import Stopped, StopReason


class RunHandle:
    """One run that this process drives. All methods belong to the event loop."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.fence = 0
        self.stopping: StopReason | None = None
        self.draining = False
        self._stretches: dict[asyncio.Task[Any], bool] = {}
        """By task, whether it is interrupted. Tool calls run in tasks of their own, while the
        driver waits for them."""

    def stop(self, reason: StopReason) -> None:
        """Interrupt the driver's waits. The first reason is kept, but a lost lease replaces it."""
        if self.stopping is None or reason is StopReason.LEASE_LOST:
            self.stopping = reason
        for task, is_interrupted in self._stretches.items():
            if not is_interrupted:
                self._stretches[task] = True
                task.cancel()

    def check(self) -> None:
        """Raise `Stopped` if the driver should not start another step."""
        if self.stopping is not None:
            raise Stopped(self.stopping)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let `stop` take effect immediately in this block, as `Stopped`.

        Outside of it the driver writes rows, and must not be interrupted in a transaction. A block
        may contain others of its task: everything in between is interruptible as well, and
        `CancelledError` is raised up to the outermost one, so no code in between takes the stop for
        an error. Several tasks may be in blocks at the same time: a stop interrupts each.
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
                # The block ended at the time of the cancel, normally or with another error.
                task.uncancel()
        if is_interrupted:
            self.check()
