"""The data directory, through which the accounts of sandboxes must be able to pass."""

from __future__ import annotations

import os
from pathlib import Path


def make_data_directory(directory: Path) -> None:
    """Create the directory with the mode 0711, and its missing parents, if it does not exist.

    Only root uses accounts for sandboxes. These pass through the new directories whatever the umask
    is. Raises `OSError`.
    """
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True, mode=0o711)
    for each in missing if os.geteuid() == 0 else ():
        each.chmod(each.stat().st_mode | 0o111)
