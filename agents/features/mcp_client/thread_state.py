"""The state of MCP programs on several hosts.

It is stored when they have ended, and restored on the host where the thread continues. Functions of
rows are for transactions; all others block.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

from django.db import transaction

from agents.features.mcp_client.models import McpState
from agents.features.mcp_client.programs import AREA, state_area, state_lock
from agents.features.mcp_client.protocol.limits import STATE_BYTES
from agents.kernel.thread_state import ThreadState
from agents.models import Thread
from agents.services.files.stored_snapshots import StoredSnapshots, erase_stored
from agents.services.files.thread_files import lie_here
from agents.settings import DataSettings
from sandbox.directories.owned import make_private
from sandbox.directories.removal import remove_tree
from sandbox.errors import SandboxError
from sandbox.snapshots import Manifest, SnapshotLimits, SnapshotLost, restore
from sandbox.workspace import Workspace

LIMITS = SnapshotLimits(file_bytes=128 * 1024**2, read_bytes=STATE_BYTES, seconds=30.0)
"""For states that are stored after a run. A host that fetches a file has it in memory."""
MAX_STATES = 20
"""More stored states of one thread than this cause a search for old ones."""


class ProgramStates(ThreadState):
    field = "mcp_state"
    lost = (
        "The stored files of the programs of MCP servers are lost: they start again without them."
    )
    restored = (
        "The stored files of the programs of MCP servers are those of the last end or wait of a "
        "run."
    )
    too_large = "The stored files of its MCP programs are larger than the limit of a snapshot."

    def last(self, thread_id: str) -> str | None:
        return McpState.objects.filter(pk=thread_id).values_list("manifest", flat=True).first()

    def record(self, thread_id: str, stored: str) -> None:
        McpState.objects.update_or_create(thread_id=thread_id, defaults={"manifest": stored})

    def forget(self, thread_id: str) -> None:
        McpState.objects.filter(pk=thread_id).delete()

    def store(self, workspace: Workspace, limits: SnapshotLimits) -> str | None:
        return store_state(workspace, limits)

    def restore(self, workspace: Workspace, stored: str) -> bool:
        return restore_state(workspace, stored)


PROGRAM_STATES = ProgramStates()
STATES = [PROGRAM_STATES]


def store_state(workspace: Workspace, limits: SnapshotLimits | None = None) -> str | None:
    """Put the directories of all programs of a thread into the storage.

    Returns the name of the stored state, "" if it is larger than `limits`, and None if there is no
    state. Waits for programs that are ending. Raises `StorageFailed`, LockTimeout and OSError.
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


def restore_state(workspace: Workspace, stored: str) -> bool:
    """Restore the directories as they were stored. Return whether that was possible.

    All or nothing: half of a state may be worse than an empty one. Raises `StorageFailed` and
    OSError.
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
        pass  # the caller reports it
    remove_tree(area)
    return False


def forget_old_states(workspace: Workspace, keep: str, confirm: Callable[[], object]) -> None:
    """Remove the stored states except `keep`, if there are many.

    `confirm` raises an error if the thread has left this host. Raises `StorageFailed`, LockTimeout
    and OSError.
    """
    store = _store(workspace)
    if len(os.listdir(store.directory / "manifests")) > MAX_STATES:
        store.prune({keep})
        store.forget_published({keep}, confirm)


def drop_states(thread_id: str) -> None:
    """Remove all stored states of a thread that has been erased. Raises as `forget_old_states`."""
    erase_stored(thread_id)
    remove_tree(DataSettings.now().snapshots / thread_id)


def _store(workspace: Workspace, limits: SnapshotLimits | None = None) -> StoredSnapshots:
    """Separate from snapshots, which people can see: these states can contain secrets."""
    thread_id = workspace.root.name
    directory = DataSettings.now().snapshots / thread_id / AREA
    return StoredSnapshots(directory, f"{thread_id}/{AREA}", limits or LIMITS)


class NotOurs(SandboxError):
    """The thread is on another host."""


class Erased(SandboxError):
    """The thread is being erased."""


@transaction.atomic
def record_own_state(thread_id: str, stored: str) -> None:
    """Store which state is the last one, if the thread is still on this host.

    Raises `NotOurs` and `Erased`.
    """
    must_be_ours(thread_id)
    PROGRAM_STATES.record(thread_id, stored)


@transaction.atomic
def must_be_ours(thread_id: str) -> None:
    """Keep the thread on this host until the transaction ends. Raises `NotOurs` and `Erased`."""
    first = Thread.objects.filter(pk=thread_id).values_list("root_id", flat=True).first()
    # A move to another host waits for this row.
    locked = Thread.objects.select_for_update(no_key=True).filter(pk=first or thread_id)
    thread = Thread.objects.select_related("root").filter(pk=thread_id).first()
    if locked.first() is None or thread is None:
        raise Erased(f"The thread {thread_id} is being erased.")
    if not lie_here(thread):
        raise NotOurs(f"The thread {thread_id} is another host's.")
