"""State that features keep for a thread on its machine, in addition to the thread's files.

It is stored when a run releases the thread, and moves with the thread to another machine. A feature
lists instances of `ThreadState` in its `thread_state.STATES`.
"""

from __future__ import annotations

from typing import ClassVar

from agents.kernel.features import collect
from sandbox.snapshots import SnapshotLimits
from sandbox.workspace import Workspace


class ThreadState:
    """One kind of state.

    `last`, `record` and `forget` only change rows, in a transaction of the caller. `store` and
    `restore` block: call them in threads.
    """

    field: ClassVar[str]
    """The field of the event `workspace.moved` that is `kept` or `lost`."""
    lost: ClassVar[str]
    """A sentence to the model, after a state could not be restored."""
    restored: ClassVar[str]
    """A sentence to the model, after the state of a machine that failed was restored."""
    too_large: ClassVar[str]
    """The reason why a thread cannot leave its machine, for the operator."""

    def last(self, thread_id: str) -> str | None:
        """Return the last value of `record`; None if there is no state."""
        raise NotImplementedError

    def record(self, thread_id: str, stored: str) -> None:
        """Record `stored` as the last state."""
        raise NotImplementedError

    def forget(self, thread_id: str) -> None:
        """Delete the record: there is no state any more."""
        raise NotImplementedError

    def store(self, workspace: Workspace, limits: SnapshotLimits) -> str | None:
        """Copy the state to the storage that all machines share, and return its name there.

        Returns "" if it exceeds `limits`, and None if there is no state. Raises `StorageFailed`,
        LockTimeout and OSError.
        """
        raise NotImplementedError

    def restore(self, workspace: Workspace, stored: str) -> bool:
        """Restore the state that `store` returned. Return whether that was possible.

        Raises `StorageFailed` and OSError.
        """
        raise NotImplementedError


def thread_states() -> list[ThreadState]:
    """Return the states of the installed features."""
    return [state for _, state in collect("thread_state", "STATES")]
