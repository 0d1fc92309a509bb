"""Finding the programs that the sandbox itself relies on."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def find_executable(name: str) -> Path | None:
    """The absolute path of `name` on PATH, or None.

    A program that somebody other than root or this account could have put there, or can rewrite,
    is not taken: it would run with this process's rights, outside of any sandbox.
    """
    found = shutil.which(name)
    if found is None or not os.path.isabs(found):
        return None
    path = Path(found).resolve()
    status = path.stat()
    trusted = status.st_uid in (0, os.geteuid()) and not status.st_mode & stat.S_IWOTH
    return path if trusted else None
