"""Files that root writes for the account of Vel."""

from __future__ import annotations

import os
from pathlib import Path

from agents.settings import DataSettings


def give_to_owner(descriptor: int, directory: Path | None = None) -> None:
    """Give a new file or directory to the owner of `directory`, if this process is root.

    An administrator can make and restore backups as root. The service must be able to use the files
    afterwards. Without `directory`, the owner is that of the data directory.
    """
    if os.geteuid() == 0:
        owner = os.stat(directory or DataSettings.now().DATA_DIR)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
