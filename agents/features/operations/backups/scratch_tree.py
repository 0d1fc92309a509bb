"""Write files into a scratch directory, without ever following a link or leaving it."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agents.features.operations.backups.errors import BackupRefused, cannot_write
from agents.features.operations.backups.manifest import StoredDirectory, StoredFile, check_path
from sandbox.directories.removal import remove_tree

_PREFIX = ".backup-"
_YOUNG_SECONDS = 60.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def scratch_directory(base: Path) -> Iterator[Path]:
    """Create a directory with mode 0700 in `base`, and delete it at the end.

    Also deletes those that killed processes have left: nobody holds their locks. Raises
    `BackupRefused`.
    """
    try:
        for name in os.listdir(base):
            if name.startswith(_PREFIX):
                _remove_abandoned(base / name)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    except OSError as error:
        raise cannot_write(base, error) from error
    lock = os.open(path, _DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path
    finally:
        remove_tree(path)
        os.close(lock)


def _remove_abandoned(path: Path) -> None:
    try:
        lock = os.open(path, _DIRECTORY)
    except OSError:
        return  # no directory, or another process has just deleted it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A process that has just created it has not locked it yet.
        if os.fstat(lock).st_mtime < time.time() - _YOUNG_SECONDS:
            remove_tree(path)
    except BlockingIOError:
        pass  # in use
    finally:
        os.close(lock)


class ScratchTree:
    """A new directory that only this account can enter."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(mode=0o700)
        self._is_root = os.geteuid() == 0

    def make_directories(self, directories: Sequence[StoredDirectory]) -> None:
        """Create the directories, open for this account until `finish`."""
        for each in sorted(directories, key=lambda one: one.path.count("/")):
            check_path(each.path)
            above, _, name = each.path.rpartition("/")
            with self._opened(above) as parent:
                os.mkdir(name, 0o700, dir_fd=parent)

    @contextmanager
    def new_file(self, stored: StoredFile) -> Iterator[BinaryIO]:
        """Create a file with its mode and time, and as root with its owner."""
        check_path(stored.path)
        above, _, name = stored.path.rpartition("/")
        with self._opened(above) as parent:
            descriptor = os.open(name, _NEW, 0o600, dir_fd=parent)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            self._give(descriptor, stored)
            os.fchmod(descriptor, stored.mode & 0o777)
            os.utime(descriptor, ns=(stored.mtime_ns, stored.mtime_ns))

    def finish(self, directories: Sequence[StoredDirectory]) -> None:
        """Give the directories their modes, and as root their owners, the deepest first."""
        for each in sorted(directories, key=lambda one: -one.path.count("/")):
            with self._opened(each.path) as descriptor:
                self._give(descriptor, each)
                os.fchmod(descriptor, each.mode & 0o777)

    def _give(self, descriptor: int, stored: StoredFile | StoredDirectory) -> None:
        """As root, give the file to the account that had it. Raises `BackupRefused`."""
        if not self._is_root:
            return
        try:
            os.fchown(descriptor, stored.uid, stored.gid)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise BackupRefused(
                f"The files belong to the account {stored.uid} and the group {stored.gid}, which "
                "do not exist in this container or user namespace. Restore as an ordinary account "
                "or outside of it."
            ) from None

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        descriptor = os.open(self.path, _DIRECTORY)
        try:
            for name in path.split("/") if path else ():
                inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)
