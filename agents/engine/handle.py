"""How a running driver is reached from outside: to stop it, and to see whether its lease holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from agents.engine.errors import Stopped, StopReason


class RunHandle:
    """One run that this process drives. All methods belong to the event loop."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.fence = 0
        self.stopping: StopReason | None = None
        self.draining = False
        self._interruptible: asyncio.Task[object] | None = None
        self._interrupted = False

    def stop(self, reason: StopReason) -> None:
        """Interrupt what the driver waits for. The first reason stays, but a lost lease wins."""
        if self.stopping is None or reason is StopReason.LEASE_LOST:
            self.stopping = reason
        if self._interruptible is not None and not self._interrupted:
            self._interrupted = True
            self._interruptible.cancel()

    def check(self) -> None:
        """Raise `Stopped` if the driver should not begin another step."""
        if self.stopping is not None:
            raise Stopped(self.stopping)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A stretch in which `stop` takes effect at once, as `Stopped`.

        Outside of it the driver writes rows, and is not to be torn out of a transaction.
        """
        self.check()
        task = asyncio.current_task()
        assert task is not None
        self._interruptible = task
        self._interrupted = False
        try:
            yield
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            task.uncancel()
            assert self.stopping is not None
            raise Stopped(self.stopping) from None
        finally:
            self._interruptible = None
            if self._interrupted and task.cancelling():
                # The stretch ended by itself in the moment of the cancel, or with another error.
                task.uncancel()
        if self._interrupted:
            self.check()
