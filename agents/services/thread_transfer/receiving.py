"""A thread's directories on one of several hosts: find the present ones, and create them again.

Each time a thread leaves a host, `Thread.placement` of its first thread is increased. A directory
records its placement: with another one it is obsolete and never used again. All functions block;
call them in threads.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.kernel.thread_state import ThreadState
from agents.services.files.snapshots import snapshot_store, watched_areas
from agents.services.files.upload_contents import directory_uploads
from agents.services.files.workspaces import WorkspaceLocation, open_workspace
from agents.services.placement import MARK, is_current
from agents.settings import DataSettings
from sandbox.directories.removal import remove_tree
from sandbox.snapshots import Manifest, restore
from sandbox.snapshots.manifest import is_left_out


@dataclass(slots=True)
class ReceivedFiles:
    """The result for one thread's files.

    `missing` are paths of the state whose content was not kept; `left_out` are directories that
    snapshots never contain, such as node_modules. `lost` are the states of features that could not
    be restored.
    """

    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    lost: list[ThreadState] = field(default_factory=list)


def receive_thread(
    location: WorkspaceLocation,
    placement: int,
    state: str | None,
    states: Sequence[tuple[ThreadState, str]] = (),
) -> ReceivedFiles:
    """Create the directories of a thread from another host.

    Existing directories are set aside. An incomplete directory has no mark and is not used.

    Args:
        location: The place of the thread's files.
        placement: `Thread.placement` of its first thread, which marks the directory.
        state: The last stored state of the files. None: there are none.
        states: The last stored states of features.

    Raises:
        StorageFailed: The storage failed. Another try may succeed.
        SnapshotLost: The state is damaged or gone.
        SandboxError, OSError, LockTimeout: The files cannot be written.
    """
    thread_id = location.thread_id
    store = snapshot_store(thread_id)
    with store.lock:
        received = ReceivedFiles()
        if is_current(thread_id, placement):
            return received  # another driver of the family was faster
        set_aside(thread_id)
        workspace = open_workspace(location)
        if state is not None:
            target = store.load(state)
            owner = (workspace.uid, workspace.gid) if os.geteuid() == 0 else None
            done = restore(store, watched_areas(workspace), Manifest({}), target, owner)
            unkept = {path for path, node in target.nodes.items() if node.reason}
            received.left_out = sorted(path for path in unkept if is_left_out(path))
            failed = {path for path, _ in done.failed}
            received.missing = sorted((unkept | failed) - set(received.left_out))
        for kind, stored in states:
            if not (stored and kind.restore(workspace, stored)):
                received.lost.append(kind)
        _write_mark(workspace.root, placement)
        return received


def set_aside(thread_id: str) -> Path | None:
    """Move a thread's directory out of use, and return its new path; None if there is none."""
    settings = DataSettings.now()
    root = settings.workspaces / thread_id
    if not root.exists() and not root.is_symlink():
        return None
    settings.set_aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    location = settings.set_aside / f"{thread_id}-{secrets.token_hex(4)}"
    os.rename(root, location)
    return location


def discard(thread_id: str) -> None:
    """Remove the directory of a thread whose files are in the storage."""
    if (location := set_aside(thread_id)) is not None:
        remove_tree(location)


def _write_mark(root: Path, placement: int) -> None:
    new = root / f".{MARK}"
    new.write_text(str(placement))
    os.rename(new, root / MARK)


def bring_uploads(
    location: WorkspaceLocation,
    names: Mapping[str, tuple[str, bool]],
    fetch: Callable[[str], bytes | None],
) -> None:
    """Update user_uploads to contain exactly the files that people have uploaded on any host.

    `names` are the files and their renditions, each with the id of its upload and whether it is a
    rendition; `fetch` returns the bytes of a name, or None if only this host has them.
    """
    files = directory_uploads(location)
    there = {entry.name for entry in files.entries() if entry.type == "file"}
    for name in names:
        if name not in there and (data := fetch(name)) is not None:
            files.replace(name, data)
    for name in there - names.keys():
        files.remove(name)
