"""Functions to open directories and files from which a command has removed permissions.

A command can take the owner's permissions from a directory or a file. Root ignores that, but an
ordinary account, which owns what its commands write, could then not measure, store, move or delete
the tree. These functions restore missing permissions of the owner. They work with directory
descriptors, do not follow links, and change only the entry that they open.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from sandbox.directories.beneath import DIRECTORY, READ

LIST = stat.S_IRUSR | stat.S_IXUSR
CHANGE = stat.S_IRWXU
MAX_DEPTH = 256
"""The most nested directories that are measured or compared."""

Name = str | bytes | Path


def open_directory(name: Name, parent: int | None = None, needs: int = LIST) -> int:
    """Open the directory `name` of `parent`, after restoring the permissions in `needs`.

    Raises OSError for a link, for an entry that is not a directory, and for a directory of another
    account without these permissions.
    """
    try:
        descriptor = os.open(name, DIRECTORY, dir_fd=parent)
    except PermissionError:
        _permit(name, parent, needs, os.O_DIRECTORY)
        descriptor = os.open(name, DIRECTORY, dir_fd=parent)
    try:
        if not os.access(".", needs >> 6, dir_fd=descriptor, effective_ids=True):
            status = os.fstat(descriptor)
            if status.st_uid == os.geteuid():  # only the owner can change the mode
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | needs)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_file(name: Name, parent: int) -> int:
    """Open the file `name` of `parent` for reading, without waiting for a FIFO's writer.

    Raises OSError for a link, and for an unreadable file that belongs to another account.
    """
    try:
        return os.open(name, READ | os.O_NOFOLLOW, dir_fd=parent)
    except PermissionError:
        _permit(name, parent, stat.S_IRUSR)
        return os.open(name, READ | os.O_NOFOLLOW, dir_fd=parent)


def open_below(root: int, names: Sequence[bytes]) -> int:
    """Open the nested directory `names` below `root`.

    Each name is opened from its parent, because a command may replace any of them at the same time.
    """
    directory = os.dup(root)
    for name in names:
        try:
            below = open_directory(name, directory)
        finally:
            os.close(directory)
        directory = below
    return directory


def path_below(root: int, directory: int) -> list[str]:
    """Return the names on the way from the open `root` down to the open `directory`.

    Raises OSError if `directory` is not below `root`, for example because it was deleted.
    """
    top, path = _path_of(root), _path_of(directory)
    if not path.is_relative_to(top):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    return list(path.relative_to(top).parts)


def _path_of(descriptor: int) -> Path:
    if sys.platform == "darwin":
        found = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        return Path(os.fsdecode(found.rstrip(b"\0")))
    return Path(os.readlink(f"/proc/self/fd/{descriptor}"))


def _permit(name: Name, parent: int | None, needs: int, flags: int = 0) -> None:
    """Add `needs` to the mode of an entry.

    Raises PermissionError if the entry belongs to another account.
    """
    if not hasattr(os, "O_PATH"):  # macOS
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode) | needs
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(found).st_mode) | needs
        os.chmod(f"/proc/self/fd/{found}", mode)
    finally:
        os.close(found)
