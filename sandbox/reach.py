"""Whether another account can walk to a path."""

from __future__ import annotations

import stat
from pathlib import Path


def unreachable_directory(path: Path, uid: int) -> Path | None:
    """The first directory on the way to `path`, itself included, that `uid` cannot enter.

    Looks at owner and "others" only: sandbox accounts are in no group, and access lists are not
    read. A directory that does not exist counts as reachable.
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
