"""Scan of the areas of a workspace, which lists all entries and keeps the new contents."""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from sandbox.directories.reopening import open_directory, open_file
from sandbox.snapshots.manifest import LEFT_OUT, Manifest, Node, SnapshotLimits, is_kept_file

Stamp = tuple[int, int, int, int]
"""Inode, size, mtime and ctime in nanoseconds."""

RACY_NS = 50_000_000
"""A file that changed so shortly before the walk may change again with the same stamp, because
clocks of file systems tick in milliseconds. The next walk reads it again."""

_PERMISSIONS = 0o777


class Scan:
    """One scan. `run` fills `nodes`, `stamps`, and `read`, the number of bytes read.

    `keep(descriptor, size)` stores an open file and returns its hash, or None if the file has grown
    beyond the limit.
    """

    def __init__(
        self,
        last: Manifest,
        stamps: Mapping[str, Stamp],
        keep: Callable[[int, int], str | None],
        limits: SnapshotLimits,
    ) -> None:
        self._last = last.nodes
        self._last_stamps = stamps
        self._keep = keep
        self._limits = limits
        self._entries = 0
        self._name_length = 0
        self._deadline = time.monotonic() + limits.seconds
        self._trusted_before = time.time_ns() - RACY_NS
        self.read = 0
        self.nodes: dict[str, Node] = {}
        self.stamps: dict[str, Stamp] = {}

    def run(self, areas: Mapping[str, Path]) -> None:
        """Scan each area. An area that cannot be opened is listed as not kept."""
        for name in sorted(areas):
            try:
                descriptor = open_directory(areas[name])
            except OSError as error:
                self.nodes[name] = Node(
                    "directory", 0, reason=f"cannot be opened: {error.strerror}"
                )
                continue
            try:
                self._directory(descriptor, name, 1)
            finally:
                os.close(descriptor)

    def _directory(self, descriptor: int, path: str, depth: int) -> None:
        mode = os.fstat(descriptor).st_mode & _PERMISSIONS
        try:
            found = self._names(descriptor, path, depth)
        except OSError as error:
            found = f"cannot be read: {error.strerror}"
        if isinstance(found, str):
            self.nodes[path] = Node("directory", mode, reason=found)
            return
        self.nodes[path] = Node("directory", mode)
        self._entries += len(found)
        for entry in found:
            self._entry(descriptor, entry, f"{path}/{entry.name}", depth)

    def _names(self, descriptor: int, path: str, depth: int) -> list[os.DirEntry[str]] | str:
        """Return the names in a directory, sorted, or the reason why it is not scanned."""
        limits = self._limits
        if depth > limits.depth:
            return f"nested deeper than {limits.depth} directories"
        if time.monotonic() > self._deadline:
            return f"not scanned within {limits.seconds:g} s"
        with os.scandir(descriptor) as names:
            found = list(islice(names, limits.directory + 1))
        if len(found) > limits.directory:
            return f"contains more than {limits.directory} names"
        if self._entries + len(found) > limits.entries:
            return f"the limit of {limits.entries} files was reached before it"
        length = sum(len(path) + 1 + len(entry.name) for entry in found)
        if self._name_length + length > limits.names:
            return f"the limit of {limits.names} characters of paths was reached before it"
        self._name_length += length
        return sorted(found, key=lambda entry: entry.name)

    def _entry(self, parent: int, entry: os.DirEntry[str], path: str, depth: int) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
            mode = status.st_mode
            if modes.S_ISDIR(mode) and entry.name in LEFT_OUT:
                reason = "directories of this name are left out"
                self.nodes[path] = Node("directory", mode & _PERMISSIONS, reason=reason)
            elif modes.S_ISDIR(mode):
                descriptor = open_directory(entry.name, parent)
                try:
                    self._directory(descriptor, path, depth + 1)
                finally:
                    os.close(descriptor)
            elif modes.S_ISREG(mode):
                self.nodes[path] = self._file(parent, entry.name, path, status)
            elif modes.S_ISLNK(mode):
                self.nodes[path] = self._link(os.readlink(entry.name, dir_fd=parent))
            else:
                self.nodes[path] = _special(mode)
        except FileNotFoundError:
            return  # removed since it was listed
        except OSError as error:
            kind = "directory" if entry.is_dir(follow_symlinks=False) else "file"
            self.nodes[path] = Node(kind, 0, reason=f"cannot be read: {error.strerror}")

    def _file(self, parent: int, name: str, path: str, status: os.stat_result) -> Node:
        stamp = stamp_of(status)
        last = self._last.get(path)
        if last is not None and is_kept_file(last) and self._last_stamps.get(path) == stamp:
            self.stamps[path] = stamp
            return last
        refused = self._refusal(status.st_size)
        if refused:
            return _unkept(status, refused)
        descriptor = open_file(name, parent)
        try:
            status = os.fstat(descriptor)
            if not modes.S_ISREG(status.st_mode):
                return _special(status.st_mode)
            refused = self._refusal(status.st_size)
            if refused:
                return _unkept(status, refused)
            self.read += status.st_size
            content = self._keep(descriptor, status.st_size)
            if content is None:
                return _unkept(status, "it grew while it was read")
            after = stamp_of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        if after == stamp_of(status) and status.st_ctime_ns < self._trusted_before:
            self.stamps[path] = after
        return Node("file", status.st_mode & _PERMISSIONS, status.st_size, content)

    def _link(self, target: str) -> Node:
        if self._name_length + len(target) > self._limits.names:
            return Node("link", 0, reason="the limit of path characters was reached before it")
        self._name_length += len(target)
        return Node("link", 0, content=target)

    def _refusal(self, size: int) -> str:
        limits = self._limits
        if size > limits.file_bytes:
            return f"larger than {limits.file_bytes} bytes"
        if self.read + size > limits.read_bytes:
            return f"the limit of {limits.read_bytes} new bytes was reached before it"
        if time.monotonic() > self._deadline:
            return f"not reached within {limits.seconds:g} s"
        return ""


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _unkept(status: os.stat_result, reason: str) -> Node:
    mark = f"{status.st_ino}:{status.st_mtime_ns}"
    return Node("file", status.st_mode & _PERMISSIONS, status.st_size, mark, reason)


def _special(mode: int) -> Node:
    name = "a FIFO" if modes.S_ISFIFO(mode) else "a socket" if modes.S_ISSOCK(mode) else "a device"
    return Node("other", mode & _PERMISSIONS, reason=f"{name}, not a file")
