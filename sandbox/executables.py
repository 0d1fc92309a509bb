"""Search for the programs that the sandbox itself needs."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def find_executable(name: str) -> Path | None:
    """Return the absolute path of `name` on PATH, or None if there is no safe program.

    A program is not safe if an account other than root or this one owns it, or if everybody or
    another group can write it: it would run with the rights of this process, outside any sandbox.
    The groups of root and of this process may write it.
    """
    found = shutil.which(name)
    if found is None or not os.path.isabs(found):
        return None
    path = Path(found).resolve()
    status = path.stat()
    writers = stat.S_IWOTH if status.st_gid in (0, os.getegid()) else stat.S_IWOTH | stat.S_IWGRP
    trusted = status.st_uid in (0, os.geteuid()) and not status.st_mode & writers
    return path if trusted else None
