"""State of features for a thread on its machine, in addition to the thread's files.

The state moves with the thread: a drained machine calls `store` before it gives the thread away,
and the next machine calls `restore`. Nothing else calls `store`: a feature whose state must survive
a failed machine stores it itself at the end of each run, with `record`. A feature lists instances
of `ThreadState` in its `thread_state.STATES`.
"""

from __future__ import annotations

from typing import ClassVar

from agents.kernel.features import collect
from sandbox.snapshots import SnapshotLimits
from sandbox.workspace import Workspace


class ThreadState:
    """One kind of state of a thread, which moves with the thread to another machine.

    `last`, `record` and `forget` use only the database, in a transaction of the caller. `store` and
    `restore` block, so call them in threads.
    """

    field: ClassVar[str]
    """The field of the event `workspace.moved` with the value `kept` or `lost`."""
    lost: ClassVar[str]
    """The sentence to the model if a state could not be restored."""
    restored: ClassVar[str]
    """The sentence to the model if the state of a failed machine was restored."""
    too_large: ClassVar[str]
    """The reason for the operator why a thread with too large a state cannot leave its machine."""

    def last(self, thread_id: str) -> str | None:
        """Return the value that was recorded last, None if there is no state."""
        raise NotImplementedError

    def record(self, thread_id: str, stored: str) -> None:
        """Record `stored` as the last state."""
        raise NotImplementedError

    def forget(self, thread_id: str) -> None:
        """Delete the record, because there is no state any more."""
        raise NotImplementedError

    def store(self, workspace: Workspace, limits: SnapshotLimits) -> str | None:
        """Copy the state to the storage that all machines share, and return its name there.

        Returns "" if the state exceeds `limits`, and None if there is no state. Raises
        `StorageFailed`, LockTimeout and OSError.
        """
        raise NotImplementedError

    def restore(self, workspace: Workspace, stored: str) -> bool:
        """Restore the state that `store` returned. Return whether this was possible.

        Raises `StorageFailed` and OSError.
        """
        raise NotImplementedError


def thread_states() -> list[ThreadState]:
    """Return the states of the installed features."""
    return [state for _, state in collect("thread_state", "STATES")]
