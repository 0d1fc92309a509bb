"""Check whether another account has the permissions to reach a path."""

from __future__ import annotations

import stat
from pathlib import Path


def unreachable_directory(path: Path, uid: int) -> Path | None:
    """Return the first directory on the way to `path` that the account `uid` cannot enter.

    `path` itself counts, too. Returns None if the account can reach it. Only the permissions of the
    owner and of "others" count: sandbox accounts are in no group, and access lists are not read. A
    directory that does not exist counts as reachable.
    """
    resolved = path.resolve()
    for directory in (*reversed(resolved.parents), resolved):
        try:
            status = directory.stat()
        except FileNotFoundError:
            return None
        needed = stat.S_IXUSR if status.st_uid == uid else stat.S_IXOTH
        if not status.st_mode & needed:
            return directory
    return None
