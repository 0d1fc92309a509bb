"""What MCP programs keep, on several hosts: stored once they have ended, brought where their
thread goes on. All functions block; they are for threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

from agents.mcp.limits import STATE_BYTES
from agents.services.mcp_state import AREA, state_area, state_lock
from agents.services.stored_snapshots import StoredSnapshots, erase_stored
from agents.settings import DataSettings
from sandbox.owned_directories import make_private
from sandbox.removal import remove_tree
from sandbox.snapshots import Manifest, SnapshotLimits, SnapshotLost, restore
from sandbox.workspace import Workspace

LIMITS = SnapshotLimits(file_bytes=128 * 1024**2, read_bytes=STATE_BYTES, seconds=30.0)
"""Of what is stored while a host lives. Whoever fetches a file has it in memory."""
MAX_STATES = 20
"""Stored states of one thread after which old ones are looked for."""


def store_state(workspace: Workspace, limits: SnapshotLimits | None = None) -> str | None:
    """Put the directories of all programs of a thread into the storage.

    Returns the name of what is there now; "" when it is more than `limits` allow, and None when
    no program has kept anything. Waits for programs that are being ended. Raises `StorageFailed`,
    LockTimeout and OSError.
    """
    area = state_area(workspace.root)
    if not area.is_dir():
        return None
    store = _store(workspace, limits)
    with ExitStack() as none_runs:
        for name in sorted(os.listdir(area)):
            none_runs.enter_context(state_lock(workspace.root.name, name))
        taken = store.take({AREA: area})
    if store.load(taken.manifest).over_limits():
        return ""
    store.publish(taken.manifest)
    return taken.manifest


def bring_state(workspace: Workspace, stored: str) -> bool:
    """Make the directories what they were when they were stored; whether that could be done.

    All or nothing: half of what a program has kept may be worse than none. Raises `StorageFailed`
    and OSError.
    """
    store = _store(workspace)
    owner = (workspace.uid, workspace.gid) if os.geteuid() == 0 else None
    area = make_private(workspace.root, workspace.uid, AREA)
    try:
        with store.lock:
            done = restore(store, {AREA: area}, Manifest({}), store.load(stored), owner)
        if not done.failed:
            return True
    except SnapshotLost:
        pass  # which the caller tells
    remove_tree(area)
    return False


def forget_old_states(workspace: Workspace, keep: str, confirm: Callable[[], object]) -> None:
    """Now and then remove what was stored before. `confirm` raises when the thread is no longer
    this host's. Raises `StorageFailed`, LockTimeout and OSError."""
    store = _store(workspace)
    if len(os.listdir(store.directory / "manifests")) > MAX_STATES:
        store.prune({keep})
        store.forget_published({keep}, confirm)


def drop_states(thread_id: str) -> None:
    """All that was stored of a thread that was erased meanwhile. Raises as `forget_old_states`."""
    erase_stored(thread_id)
    remove_tree(DataSettings.now().snapshots / thread_id)


def _store(workspace: Workspace, limits: SnapshotLimits | None = None) -> StoredSnapshots:
    """Of its own: states of files are shown to people, and these may hold a program's secrets."""
    thread_id = workspace.root.name
    directory = DataSettings.now().snapshots / thread_id / AREA
    return StoredSnapshots(directory, f"{thread_id}/{AREA}", limits or LIMITS)
