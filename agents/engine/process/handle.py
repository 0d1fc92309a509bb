"""How a running driver is reached from outside: to stop it, and to see whether its lease holds."""

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
        """By task, whether it is interrupted: calls of tools run in tasks of their own, beside
        the driver that waits for them."""

    def stop(self, reason: StopReason) -> None:
        """Interrupt what the driver waits for. The first reason stays, but a lost lease wins."""
        if self.stopping is None or reason is StopReason.LEASE_LOST:
            self.stopping = reason
        for task, is_interrupted in self._stretches.items():
            if not is_interrupted:
                self._stretches[task] = True
                task.cancel()

    def check(self) -> None:
        """Raise `Stopped` if the driver should not begin another step."""
        if self.stopping is not None:
            raise Stopped(self.stopping)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A stretch in which `stop` takes effect at once, as `Stopped`.

        Outside of it the driver writes rows, and is not to be torn out of a transaction. A stretch
        may contain others of its task: what is in between is interruptible as well, and
        `CancelledError` passes up to the outermost one, so that nothing on the way takes the stop
        for an error. Several tasks may be in stretches at once: a stop interrupts each.
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
                # The stretch ended by itself in the moment of the cancel, or with another error.
                task.uncancel()
        if is_interrupted:
            self.check()
