"""Limit of the disk use of commands.

Counting a large tree takes seconds. So the watch often reads the free room of the file system,
which is quick, but other programs use the room, too. It counts the tree in slices: from time to
time, and immediately if the loss of free room could mean that the quota is used up.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.directories.reopening import MAX_DEPTH
from sandbox.linux.quota import TreeScan, Usage
from sandbox.linux.watchdog import in_units, open_files_of, processes_of
from sandbox.policy import Limits, Mount
from sandbox.watch import Watch

_FIRST_COUNT = 0.25
_LAST_COUNT = 2.0
"""Time limits in seconds for counting, before a command runs and after it."""
_SLICE = 0.02
_SHORTEST, _LONGEST = 0.05, 0.5
"""Seconds between two checks."""
_FASTEST_WRITE = 2 * 1024**3
"""Bytes per second."""
_SUSPECT = 0.9
_SLACK = Usage(1024**2, 100)
"""How much a tree over its quota may still grow: a command that deletes files writes a little."""
_UNLIMITED = 1 << 62
_UNSEEN_GROWTH = 64 * 1024**2
"""How many bytes may disappear while a part cannot be measured."""
_HOST_RESERVE = 1024**3
_HOST_RESERVE_PART = 0.02


@dataclass(frozen=True, slots=True)
class _Room:
    """The room on the file systems, in bytes and names. Some file systems report no names."""

    free: int
    free_files: int
    total: int


@dataclass(frozen=True, slots=True)
class _Bounds:
    size: int | None
    files: int | None


@dataclass(slots=True)
class Base:
    """The contents of the caller's own directories before the first command, once counted.

    They do not count as the commands' use. The commands of one sandbox share this object.
    """

    usage: Usage | None = None


class DiskWatch(Watch):
    """Limits the size of the writable `mounts` while one command runs.

    `first` is the first process of the command. Create the watch before the command runs. If a tree
    is then over its quota already, the command is killed only if the tree grows.
    """

    def __init__(
        self, first: int, mounts: Sequence[Mount], limits: Limits, base: Base | None = None
    ) -> None:
        self._first = first
        self._limits = limits
        sources = {mount.source: mount.target for mount in mounts if mount.writable}
        self._where = next(iter(sources.values())) if len(sources) == 1 else "the workspace"
        self._directories = [
            path for path in sources if path.is_dir() and sources.keys().isdisjoint(path.parents)
        ]
        foreign = any(mount.foreign and mount.writable for mount in mounts)
        self._base = (base or Base()) if foreign else Base(Usage())
        self._devices = {path.stat().st_dev: path for path in self._directories}
        self._room_before = self._room()
        self._before: Usage | None = None
        self._known = Usage()
        self._known_drop = 0
        self._counted_at = time.monotonic()
        self._count_seconds = 0.0
        self._scan: TreeScan | None = TreeScan(self._directories)
        self._scan_drop = 0
        self._continue_counting(_FIRST_COUNT, Usage())
        self.due = time.monotonic() + self._pause(Usage())

    def check(self) -> str | None:
        dropped = self._dropped()
        reason = self._host_is_full(dropped) or self._grows_unseen(dropped)
        if reason is None:
            suspect = self._is_suspect(dropped)
            if self._scan is None and self._should_count(suspect):
                self._scan, self._scan_drop = TreeScan(self._directories), dropped.size
            if self._scan is not None:
                reason = self._continue_counting(_SLICE * 2 if suspect else _SLICE, dropped)
            # Count from time to time, too: other programs may free room that the command uses.
            counted = self._scan is None
            if reason is None and (suspect or counted) and self._before is not None:
                reason = self._over(Usage(self._known.size + self._deleted(), self._known.files))
        self.due = time.monotonic() + self._pause(dropped)
        return reason

    def last_word(self) -> str | None:
        """Check the tree a last time, after a command. Return a message if it is over its quota.

        Returns None if it is not, and also if counting would take more than two seconds.
        """
        dropped = self._dropped()
        changed = dropped.size > _SLACK.size or dropped.files > _SLACK.files
        if changed or self._before is None or self._over_quota(self._before):
            self.close()
            self._scan = TreeScan(self._directories)
            if not self._scan.run(_LAST_COUNT):
                return None
            if found := self._over_quota(self._scan.usage):
                return f"{found}: delete some, a command that adds to them is killed"
        return None

    def close(self) -> None:
        if self._scan is not None:
            self._scan.close()
            self._scan = None

    def _continue_counting(self, seconds: float, dropped: Usage) -> str | None:
        """Count for about `seconds`. Return the reason to kill the command, or None."""
        scan = self._scan
        assert scan is not None
        done = scan.run(seconds)
        if done:
            if self._before is None:
                # The room that disappeared since the start counts as the command's use.
                grown = min(scan.usage.size, dropped.size), min(scan.usage.files, dropped.files)
                self._before = Usage(
                    scan.usage.size - grown[0], scan.usage.files - grown[1], scan.usage.complete
                )
                self._base.usage = self._base.usage or self._before
            self._known, self._known_drop = scan.usage, self._scan_drop
            self._counted_at, self._count_seconds = time.monotonic(), scan.seconds
            self.close()
        if self._before is None:
            return None
        if done and not scan.usage.complete and self._before.complete:
            return f"directories nested deeper than {MAX_DEPTH}"
        return self._over(scan.usage)

    def _over(self, usage: Usage) -> str | None:
        if self._uses_reserve(usage):
            return f"the host's disk has only {in_units(self._free())} left"
        return self._exceeds(usage, self._ceiling())

    def _uses_reserve(self, usage: Usage) -> bool:
        """Return whether the tree has grown while less than the reserve is free."""
        before = self._before or Usage()
        has_grown = self._before is not None and usage.size > before.size + _SLACK.size
        return has_grown and self._free() < self._limits.reserve

    def _over_quota(self, usage: Usage) -> str | None:
        base = self._base.usage or Usage()
        return self._exceeds(usage, _plus(base, self._limits, Usage()))

    def _ceiling(self) -> _Bounds:
        """Return the most that the tree may contain while this command runs."""
        return _plus(self._base.usage or Usage(), self._limits, self._before or Usage())

    def _exceeds(self, usage: Usage, bounds: _Bounds) -> str | None:
        if bounds.size is not None and usage.size > bounds.size:
            return f"more than {in_units(self._limits.disk or 0)} of files in {self._where}"
        if bounds.files is not None and usage.files > bounds.files:
            return f"more than {self._limits.files:,} files in {self._where}"
        return None

    def _is_suspect(self, dropped: Usage) -> bool:
        """Return whether the quota may be nearly used up, judging from the free room."""
        guessed = Usage(
            self._known.size + max(0, dropped.size - self._known_drop),
            self._known.files + dropped.files,
        )
        bounds = self._ceiling()
        return self._uses_reserve(guessed) or (
            (bounds.size is not None and guessed.size > bounds.size * _SUSPECT)
            or (bounds.files is not None and guessed.files > bounds.files * _SUSPECT)
        )

    def _should_count(self, suspect: bool) -> bool:
        shortest, factor = (0.0, 3) if suspect else (0.5, 20)
        since = time.monotonic() - self._counted_at
        return since >= max(shortest, self._count_seconds * factor)

    def _pause(self, dropped: Usage) -> float:
        if self._scan is not None:
            return _SHORTEST
        left = self._free() - self._limits.reserve if self._limits.reserve else _UNLIMITED
        size = self._ceiling().size
        if size is not None:
            left = min(left, size - self._known.size - max(0, dropped.size - self._known_drop))
        return min(_LONGEST, max(_SHORTEST, left / _FASTEST_WRITE))

    def _deleted(self) -> int:
        """Return the bytes of open files without a name, which counting the tree does not find."""
        return sum(
            {
                (status.st_dev, status.st_ino): status.st_blocks * 512
                for status in open_files_of(processes_of(self._first))
                if status.st_nlink == 0
                and status.st_dev in self._devices
                and stat.S_ISREG(status.st_mode)
            }.values()
        )

    def _host_is_full(self, dropped: Usage) -> str | None:
        room = self._room()
        if dropped.size > _UNSEEN_GROWTH and room.free < min(
            _HOST_RESERVE, int(room.total * _HOST_RESERVE_PART)
        ):
            return f"the host's disk has only {in_units(room.free)} left"
        return None

    def _grows_unseen(self, dropped: Usage) -> str | None:
        hidden = self._before is not None and not self._before.complete
        if hidden and dropped.size > _UNSEEN_GROWTH:
            return f"directories nested deeper than {MAX_DEPTH}: delete them"
        return None

    def _dropped(self) -> Usage:
        """Return the room that disappeared from the file systems since the start."""
        room = self._room()
        return Usage(
            max(0, self._room_before.free - room.free),
            max(0, self._room_before.free_files - room.free_files),
        )

    def _free(self) -> int:
        """Return the bytes that this account may write on the file system with the least room."""
        found = [os.statvfs(path) for path in self._devices.values()]
        return min((status.f_bavail * status.f_frsize for status in found), default=_UNLIMITED)

    def _room(self) -> _Room:
        found = [os.statvfs(path) for path in self._devices.values()]
        return _Room(
            sum(status.f_bfree * status.f_frsize for status in found),
            sum(status.f_ffree for status in found),
            sum(status.f_blocks * status.f_frsize for status in found),
        )


def _plus(base: Usage, limits: Limits, before: Usage) -> _Bounds:
    return _Bounds(
        None if limits.disk is None else max(base.size + limits.disk, before.size + _SLACK.size),
        None
        if limits.files is None
        else max(base.files + limits.files, before.files + _SLACK.files),
    )
