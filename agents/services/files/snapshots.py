"""The states of a thread's files: storing, naming and deleting them, as rows and in the store."""

from __future__ import annotations

import logging
from pathlib import Path

from agents.models import SnapshotCause, WorkspaceSnapshot
from agents.services.files.stored_snapshots import StorageFailed, StoredSnapshots
from agents.settings import DataSettings, MachineSettings, SnapshotSettings
from sandbox.directories.file_lock import FileLock
from sandbox.paths import FAMILY_AREAS, READ_ONLY_AREAS
from sandbox.snapshots import SnapshotLost, SnapshotStore, Taken
from sandbox.workspace import Workspace

logger = logging.getLogger(__name__)


def snapshot_store(thread_id: str) -> SnapshotStore:
    """Return the store of a thread; with several hosts, it uses their common storage."""
    directory = DataSettings.now().snapshots / thread_id
    if MachineSettings.now().pins_threads:
        return StoredSnapshots(directory, thread_id)
    return SnapshotStore(directory)


def publish(store: SnapshotStore, digest: str) -> bool:
    """Copy a state to the common storage, if there are several hosts. Return whether it is there.

    The result is False on a single machine. A failure of the storage is logged, and the state stays
    on this host.
    """
    if not isinstance(store, StoredSnapshots):
        return False
    try:
        store.publish(digest)
    except (StorageFailed, SnapshotLost) as error:
        logger.error("a snapshot is on this host only: %s", error)
        return False
    return True


def last_stored(thread_id: str) -> WorkspaceSnapshot | None:
    """Return the last of a thread's states that any host can restore."""
    rows = WorkspaceSnapshot.objects.filter(thread_id=thread_id, is_stored=True)
    return rows.order_by("-pk").first()


def write_lock(thread_id: str) -> FileLock:
    """Return the lock that a file tool of this thread holds, in any process of this host."""
    return FileLock(DataSettings.now().snapshots / thread_id / "writes.lock", patience=10.0)


def watched_areas(workspace: Workspace) -> dict[str, Path]:
    """Return the directories that the agent can change, by area, without those of its parent.

    A subagent's changes in its parent's directories count as changes of the parent, when the parent
    continues.
    """
    shared = FAMILY_AREAS if workspace.family is not None else ()
    return {
        area: directory
        for area, directory in workspace.directories.items()
        if area not in READ_ONLY_AREAS and area not in shared
    }


def latest_manifest(thread_id: str) -> str | None:
    """Return the state of the thread's last row; None before the first."""
    rows = WorkspaceSnapshot.objects.filter(thread_id=thread_id)
    return rows.order_by("-pk").values_list("manifest", flat=True).first()


def record_snapshot(
    thread_id: str,
    taken: Taken,
    cause: SnapshotCause,
    *,
    run_id: str | None = None,
    turn: int | None = None,
    position: int | None = None,
    by_id: int | None = None,
    is_stored: bool = False,
) -> WorkspaceSnapshot:
    """Create a row for a stored state, in the transaction that stores the cause of the change.

    Args:
        thread_id: The thread of the files.
        taken: The state, and the changes since the state before it.
        cause: What changed the files.
        run_id: The run of the call that changed them.
        turn: The turn of the call.
        position: The position of the call in its turn.
        by_id: The user who restored the state.
        is_stored: Whether `publish` has copied the state to the common storage.
    """
    return WorkspaceSnapshot.objects.create(
        thread_id=thread_id,
        run_id=run_id,
        turn=turn,
        position=position,
        cause=cause,
        base=taken.base,
        manifest=taken.manifest,
        added=taken.changes.added,
        changed=taken.changes.changed,
        deleted=taken.changes.deleted,
        stored_bytes=taken.stored_bytes,
        is_complete=taken.is_complete,
        by_id=by_id,
        is_stored=is_stored,
    )


def forget_old_snapshots(thread_id: str) -> set[str] | None:
    """Delete the rows that exceed the retention limits, oldest first, but never the last row.

    Returns the states that rows still name, for `SnapshotStore.prune`; None if all rows are kept.
    """
    settings = SnapshotSettings.now()
    rows = WorkspaceSnapshot.objects.filter(thread_id=thread_id).order_by("-pk")
    turns: set[tuple[str | None, int | None, int]] = set()
    kept: set[str] = set()
    stored, oldest = 0, None
    for row in rows.only("run_id", "turn", "cause", "stored_bytes", "base", "manifest"):
        own = 0 if row.cause == SnapshotCause.CALL else row.pk
        turns.add((row.run_id, row.turn, own))
        stored += row.stored_bytes
        over = len(turns) > settings.SNAPSHOT_TURNS or stored > settings.SNAPSHOT_BYTES
        if over and oldest is not None:
            rows.filter(pk__lt=oldest).delete()
            return kept
        kept |= {row.base, row.manifest}
        oldest = row.pk
    return None
