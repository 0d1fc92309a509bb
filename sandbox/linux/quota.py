"""Measurement of the directories that commands can write: allocated bytes, and names.

Their contents are hostile. No link is followed, a hard link counts once, and a hole in a file does
not count. `Usage.complete` is False if a part is too deep to be measured. Directories of other
accounts are not measured.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.directories.reopening import MAX_DEPTH, open_below, open_directory
from sandbox.errors import StorageFull
from sandbox.linux.watchdog import in_units
from sandbox.policy import Limits

_MEASURE_SECONDS = 1.0
_TRUSTED_PART = 16
_UNLIMITED = 1 << 62
_BATCH = 64
"""Names between two checks of the clock."""


@dataclass(slots=True)
class Usage:
    """The use of a tree: allocated bytes, and the number of names, including directories.

    `complete` is False if a part of it is too deep to be measured.
    """

    size: int = 0
    files: int = 0
    complete: bool = True


class TreeScan:
    """Measurement of `directories` in slices, as a large tree takes seconds. Close it after use."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self.usage = Usage()
        self.seconds = 0.0
        """Total measuring time."""
        self._linked: set[tuple[int, int]] = set()
        self._walk = self._walk_all(directories)

    def run(self, seconds: float) -> bool:
        """Continue the measurement for about `seconds`. Return whether it is finished."""
        started = time.monotonic()
        try:
            while time.monotonic() - started < seconds:
                if next(self._walk, True):
                    return True
            return False
        finally:
            self.seconds += time.monotonic() - started

    def close(self) -> None:
        self._walk.close()

    def _walk_all(self, directories: Sequence[Path]) -> Generator[bool, None, None]:
        """Walk all directories, and yield False after each batch of entries."""
        for directory in directories:
            try:
                root = open_directory(directory)
            except FileNotFoundError:
                continue
            try:
                yield from self._walk_tree(root)
            finally:
                os.close(root)

    def _walk_tree(self, root: int) -> Generator[bool, None, None]:
        pending: list[tuple[bytes, ...]] = [()]
        while pending:
            names = pending.pop()
            yield False
            try:
                directory = open_below(root, names)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue  # removed or replaced; or of another account: commands cannot write it
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                continue
            try:
                yield from self._measure(directory, names, pending)
            finally:
                os.close(directory)

    def _measure(
        self, directory: int, names: tuple[bytes, ...], pending: list[tuple[bytes, ...]]
    ) -> Generator[bool, None, None]:
        with os.scandir(directory) as scan:
            for number, entry in enumerate(scan):
                if number % _BATCH == 0:
                    yield False
                try:
                    status = entry.stat(follow_symlinks=False)
                except (FileNotFoundError, PermissionError):
                    self.usage.files += 1
                    continue
                self._count(status)
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if len(names) < MAX_DEPTH:
                    pending.append((*names, os.fsencode(entry.name)))
                else:
                    self.usage.complete = False

    def _count(self, status: os.stat_result) -> None:
        self.usage.files += 1
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            key = (status.st_dev, status.st_ino)
            if key in self._linked:
                return
            self._linked.add(key)
        self.usage.size += status.st_blocks * 512


class Room:
    """The room in `directories` under `limits`, for the file tools that write from the host.

    A measurement is used until the tools have written a sixteenth of the free room that it found.
    Commands may write in between; their own watch limits them. If measuring takes longer than a
    second, the write is allowed, because the watch of commands detects an overfull tree.
    """

    def __init__(self, directories: Sequence[Path], limits: Limits) -> None:
        self._directories = directories
        self._limits = limits
        self._bytes_left = self._files_left = 0

    def require(self, size: int, path: str) -> None:
        """Raise `StorageFull` unless `size` bytes fit, before a write to the agent's `path`."""
        self._require_reserve(size, path)
        if size > self._bytes_left or self._files_left < 1:
            self._measure(size, path)
        self._bytes_left -= size
        self._files_left -= 1

    def _require_reserve(self, size: int, path: str) -> None:
        if not self._limits.reserve:
            return
        for directory in self._directories:
            try:
                status = os.statvfs(directory)
            except FileNotFoundError:
                continue
            free = status.f_bavail * status.f_frsize
            if free - size < self._limits.reserve:
                raise StorageFull(
                    f"no room left: the host's disk has only {in_units(free)} left. Delete files "
                    "that are not needed, or ask the operator to make room.",
                    path,
                )

    def _measure(self, size: int, path: str) -> None:
        limits = self._limits
        scan = TreeScan(self._directories)
        try:
            scan.run(_MEASURE_SECONDS)
        finally:
            scan.close()
        disk = _UNLIMITED if limits.disk is None else limits.disk - scan.usage.size
        files = _UNLIMITED if limits.files is None else limits.files - scan.usage.files
        if size > disk:
            raise _full(in_units(limits.disk or 0), path)
        if files < 1:
            raise _full(f"{limits.files:,} files", path)
        self._bytes_left = max(size, disk // _TRUSTED_PART)
        self._files_left = max(1, files // _TRUSTED_PART)


def _full(limit: str, path: str) -> StorageFull:
    return StorageFull(
        f"no room left: the workspace may contain {limit}. Delete files that are not needed.", path
    )
