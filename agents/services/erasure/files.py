"""Files of threads that are being erased: workspaces, snapshots, archives."""

from __future__ import annotations

import os
import secrets

from agents.services.files.stored_snapshots import StorageFailed, erase_stored
from agents.services.files.workspace_care import REMOVED
from agents.settings import DataSettings, MachineSettings
from sandbox.directories.removal import remove_tree


def erase_files(thread_id: str) -> None:
    """Remove the files on this machine and in the common storage of several hosts.

    Raises as `erase_files_here`. The thread's row is then kept, so the next call tries again.
    """
    erase_files_here(thread_id)
    if MachineSettings.now().pins_threads:
        try:
            erase_stored(thread_id)
        except StorageFailed as error:
            raise OSError(str(error)) from error


def erase_files_here(thread_id: str) -> None:
    """Remove the files on this machine. A user's own directory is kept.

    Can be called again after a crash. Raises OSError.
    """
    settings = DataSettings.now()
    workspace = settings.workspaces / thread_id
    if workspace.is_symlink() or workspace.exists():
        # Renamed first, so no process finds an incomplete workspace.
        gone = settings.workspaces / f"{REMOVED}{thread_id}-{secrets.token_hex(4)}"
        os.rename(workspace, gone)
    for location in (
        settings.snapshots / thread_id,
        settings.synced_copies / thread_id,
        *settings.workspaces.glob(f"{REMOVED}{thread_id}-*"),
        *settings.set_aside.glob(f"{thread_id}-*"),
    ):
        remove_tree(location)
    for archive in settings.archives.glob(f"{thread_id}-*.tar.gz"):
        archive.unlink(missing_ok=True)
