"""Snapshots of the files that a call has changed, committed with the call's result."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from agents.disk_space import is_short
from agents.engine.storage.journal import Call, Outcome, Writer, check_fence
from agents.middleware.context import ToolContext
from agents.models import Effect, SnapshotCause
from agents.services.files.snapshots import (
    forget_old_snapshots,
    latest_manifest,
    publish,
    record_snapshot,
    snapshot_store,
    watched_areas,
)
from agents.services.files.stored_snapshots import StorageFailed, StoredSnapshots
from agents.settings import SnapshotSettings
from sandbox.directories.file_lock import LockTimeout
from sandbox.errors import SandboxError
from sandbox.snapshots import SnapshotLost, SnapshotStore, count_changes
from sandbox.workspace import Workspace

T = TypeVar("T")

logger = logging.getLogger(__name__)

PRUNE_EVERY = 50
"""A long run checks after this number of snapshots whether some exceed the limits."""
PRUNE_SHARE = 4
"""It also checks when it has stored a fourth of a thread's limit."""


class WorkspaceBusy(SandboxError):
    """Raised while a person restores the workspace."""


class CallSnapshots:
    """Snapshots for the calls of one driver. All methods block: use them in tool threads.

    If storing fails, for example on a full disk, the history of changes is incomplete, but no call
    fails.
    """

    def __init__(
        self,
        writer: Writer,
        open_workspace: Callable[[], Workspace],
        call: Callable[..., Any],
        *,
        is_on: bool,
    ) -> None:
        self.is_on = is_on and SnapshotSettings.now().SNAPSHOT_TURNS > 0
        self.has_begun = False
        self._writer = writer
        self._open_workspace = open_workspace
        self._call = call
        self._store: SnapshotStore | None = None
        self._lock = threading.Lock()
        self._taken = 0
        self._stored = 0

    def begin(self) -> None:
        """Store the present files before the first call of this driver that may change files.

        Waits for the end of a restore. Raises `WorkspaceBusy` if that takes too long.
        """
        with self._lock:
            if self.has_begun:
                return
            thread_id = self._writer.thread_id
            store = self._store = snapshot_store(thread_id)
            if self._has_no_room():
                return
            try:
                taken = store.take(watched_areas(self._open_workspace()))
                last = self._call(latest_manifest, thread_id)
                if last is None:
                    publish(store, taken.manifest)  # the state before the first change
                if last is not None and last != taken.manifest:
                    # A person or an upload has changed the files, or a call whose result was lost
                    # with its driver.
                    changes = count_changes(store.load(last), store.load(taken.manifest))
                    outside = replace(taken, base=last, changes=changes)
                    self._call(self._record_outside, outside, publish(store, taken.manifest))
                self._prune()
            except LockTimeout:
                raise WorkspaceBusy(
                    "The files are being restored by a person. Try again in a moment."
                ) from None
            except SnapshotLost as error:
                logger.warning("%s", error, extra={"run_id": self._writer.run_id})
            except (OSError, SandboxError):
                # The tool itself reports that it cannot open the workspace.
                self._failed()
                return
            self.has_begun = True

    def after(self, call: Call) -> Callable[[], object] | None:
        """Take a snapshot after `call`. Return the function that stores it with the call's result.

        Returns None if no file has changed, or if no snapshot could be taken.
        """
        with self._lock:
            if not self.has_begun or self._store is None or self._has_no_room():
                return None
            try:
                taken = self._store.take(watched_areas(self._open_workspace()))
                self._taken += taken.has_changed
                self._stored += taken.stored_bytes
                enough = self._stored * PRUNE_SHARE > SnapshotSettings.now().SNAPSHOT_BYTES
                if enough or self._taken >= PRUNE_EVERY:
                    self._prune()
            except (OSError, SandboxError, LockTimeout):
                self._failed()
                return None
            if not taken.has_changed or not taken.base:
                return None
            is_stored = publish(self._store, taken.manifest)
        return partial(
            record_snapshot,
            self._writer.thread_id,
            taken,
            SnapshotCause.CALL,
            run_id=self._writer.run_id,
            turn=call.turn,
            position=call.position,
            is_stored=is_stored,
        )

    def _record_outside(self, taken: Any, is_stored: bool) -> None:
        check_fence(self._writer)
        thread_id = self._writer.thread_id
        record_snapshot(thread_id, taken, SnapshotCause.OUTSIDE, is_stored=is_stored)

    def _prune(self) -> None:
        assert self._store is not None
        self._taken = self._stored = 0
        kept = self._call(self._forget)
        if kept is not None:
            self._store.prune(kept)
            if isinstance(self._store, StoredSnapshots):
                self._forget_published(self._store, kept)

    def _forget_published(self, store: StoredSnapshots, kept: set[str]) -> None:
        confirm = partial(self._call, check_fence, self._writer)
        try:
            store.forget_published(kept, confirm)
        except StorageFailed as error:
            logger.warning("old snapshots stay: %s", error, extra={"run_id": self._writer.run_id})

    def _forget(self) -> set[str] | None:
        check_fence(self._writer)
        return forget_old_snapshots(self._writer.thread_id)

    def _has_no_room(self) -> bool:
        """Return whether the disk is short of space: snapshots may not use the reserve of runs."""
        if not is_short():
            return False
        logger.warning(
            "no snapshot was taken: the disk is full", extra={"run_id": self._writer.run_id}
        )
        return True

    def _failed(self) -> None:
        logger.exception("no snapshot was taken", extra={"run_id": self._writer.run_id})


async def begin_changes(snapshots: CallSnapshots, context: ToolContext, effect: str) -> None:
    """Prepare snapshots before a call with this `effect`. Only a call that may write needs them.

    The first such call of a driver takes time. Raises `WorkspaceBusy`.
    """
    if effect == Effect.WRITE and snapshots.is_on and not snapshots.has_begun:
        await context.in_thread(snapshots.begin)


async def add_changes(
    snapshots: CallSnapshots, threads: Executor, effect: str, outcome: Outcome
) -> None:
    """Add the snapshot after a call with this `effect` to the transaction that stores its outcome.

    Only a call that may write has one. `threads` execute the blocking part.
    """
    if effect != Effect.WRITE or not snapshots.is_on:
        return
    record = await to_its_end(threads, partial(snapshots.after, outcome.call))
    if record is None:
        return
    own = outcome.commit

    def commit() -> None:
        if own is not None:
            own()
        record()

    outcome.commit = commit


async def to_its_end(threads: Executor, function: Callable[[], T]) -> T:
    """Run a function in a thread, and return its result even if the caller is cancelled meanwhile.

    Such a cancellation is ignored, so that a call that has ended keeps its outcome. The function
    must take a limited time.
    """
    future = asyncio.get_running_loop().run_in_executor(threads, function)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        return future.result()
