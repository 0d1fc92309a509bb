"""Read the directories of threads, in which agents write, without following links.

An agent may replace a directory by a link at any moment. Each part of a path is therefore opened
from the directory above it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.manifest import AREAS, MOST_DEPTH, StoredDirectory

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NO_PLAIN_FILE = 0
_REPLACED = frozenset(
    {_NO_PLAIN_FILE, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV}
)
"""Errors of paths that an agent has replaced. Others, for example of the disk, are not its work."""
_LOCKS = frozenset({"lock", "writes.lock"})


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A plain file, as it was listed."""

    path: str
    status: os.stat_result


class SourceTree:
    """The files below the areas of a data directory.

    `skipped` counts, by reason, the names that cannot be backed up.
    """

    def __init__(self, data_directory: Path) -> None:
        self._top = data_directory
        self.directories: list[StoredDirectory] = []
        self.skipped: dict[str, int] = {}

    def skip(self, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def skip_replaced(self, path: str, error: OSError) -> None:
        """Skip a path that became a link or the like. Raises `BackupRefused` for other errors."""
        if error.errno not in _REPLACED:
            raise BackupRefused(
                f"{path!a} cannot be read: {error.strerror}. Repair or delete it, then try again."
            ) from error
        self.skip("replaced by something else")

    def files(self) -> Iterator[FoundFile]:
        """Yield the plain files to back up. Afterwards, `directories` has all their directories.

        Omits lock files and files that Vel is about to complete or delete. Counts everything else
        that cannot be backed up in `skipped`: links, special files, unreadable or too deep
        directories.

        Raises:
            BackupRefused: The disk does not return a directory.
        """
        waiting = [area for area in reversed(AREAS) if (self._top / area).is_dir()]
        while waiting:
            path = waiting.pop()
            try:
                with self._directory(path) as directory:
                    status = os.fstat(directory)
                    entries = sorted(os.listdir(directory))
                    found = [(name, _status(name, directory)) for name in entries]
            except FileNotFoundError:
                continue  # it was deleted meanwhile
            except PermissionError:
                self.skip("no permission")
                continue
            except OSError as error:
                self.skip_replaced(path, error)
                continue
            self.directories.append(
                StoredDirectory(
                    path, stat.S_IMODE(status.st_mode) & 0o777, status.st_uid, status.st_gid
                )
            )
            for name, each in found:
                below = f"{path}/{name}"
                if each is None or _is_left_out(path, name):
                    continue
                if stat.S_ISDIR(each.st_mode):
                    if below.count("/") >= MOST_DEPTH:
                        self.skip("too deep")
                    else:
                        waiting.append(below)
                elif stat.S_ISREG(each.st_mode):
                    yield FoundFile(below, each)
                else:
                    self.skip("link" if stat.S_ISLNK(each.st_mode) else "special file")

    def open(self, path: str) -> int:
        """Return a descriptor of a plain file. Raises OSError."""
        above, _, name = path.rpartition("/")
        with self._directory(above) as directory:
            descriptor = os.open(name, _FILE, dir_fd=directory)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(_NO_PLAIN_FILE, "it is no plain file", path)
        return descriptor

    @contextmanager
    def _directory(self, path: str) -> Iterator[int]:
        area, *below = path.split("/")
        # The operator may have made an area a link to another disk.
        descriptor = os.open(self._top / area, _DIRECTORY & ~os.O_NOFOLLOW)
        try:
            for name in below:
                inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


def _status(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _is_left_out(path: str, name: str) -> bool:
    """Return whether Vel makes the file again, or is about to delete it."""
    area, *below = path.split("/")
    if area == "snapshots":
        return (len(below) == 1 and name in _LOCKS) or name.startswith("new-")
    return not below and name.startswith(".")
