"""Measurement of the memory of a whole command on hosts without a control group.

The sum includes the processes' own and shared memory, open memory files, and the file systems in
memory. A memory file in flight in a socket, an unmapped System V segment and the buffers of sockets
belong to no process; for these, the watch checks the free memory of the host.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from sandbox.linux.namespace import HOME
from sandbox.linux.watchdog import in_units, open_files_of, over_memory, processes_of
from sandbox.policy import Mount
from sandbox.watch import Watch

_FILE_SYSTEMS = ("/tmp", "/dev/shm", HOME)  # noqa: S108 - the sandbox's own
_FASTEST_FILL = 8 * 1024**3
"""An estimate of the bytes per second that a command can fill at most."""
_SHORTEST, _LONGEST = 0.01, 0.25
"""Seconds between two checks."""
_SHARE_OF_TIME = 20
"""A check that takes one millisecond is followed by a pause of this many milliseconds."""
_INODE = 1024
"""The approximate kernel memory in bytes for one file in a file system in memory."""
_HOST_RESERVE = 0.03
"""The part of the host's memory that commands over their limit must leave free."""


class MemoryWatch(Watch):
    """Limits the memory of one command to `limit` bytes. `first` is its first process."""

    def __init__(self, first: int, limit: int, mounts: tuple[Mount, ...] = ()) -> None:
        self._first = first
        # If a mount of the policy covers the file system in memory, the disk watch counts the
        # mount.
        self._in_memory = [at for at in _FILE_SYSTEMS if at not in {m.target for m in mounts}]
        self._limit = limit
        self._files_device = _device_of_memory_files()
        self._host_total, self._host_free_before = _host_memory()
        self.due = time.monotonic() + self._pause(0, 0.0)

    def check(self) -> str | None:
        started = time.monotonic()
        used = self.bytes_used()
        now = time.monotonic()
        self.due = now + self._pause(used, now - started)
        if used > self._limit:
            return over_memory(self._limit)
        free = _host_memory()[1]
        taken = self._host_free_before - free
        if free < self._host_total * _HOST_RESERVE and taken > self._limit:
            return f"the host has only {in_units(free)} of memory left"
        return None

    def _pause(self, used: int, spent: float) -> float:
        """Return the seconds until the next check. `used` is in bytes, `spent` in seconds.

        The command could not reach the limit earlier at full speed. The time is short enough to
        notice that the host has little memory left.
        """
        needed = max(0, self._limit - used) / _FASTEST_FILL
        return max(min(_LONGEST, max(_SHORTEST, needed)), spent * _SHARE_OF_TIME)

    def bytes_used(self) -> int:
        pids = processes_of(self._first)
        files = self._memory_files(pids) + self._file_systems()
        private = mapped = 0
        for pid in pids:
            own, shared = _resident(pid)
            private += own
            mapped += shared
        # This counts memory twice that a fork shares with its parent or that two processes map.
        # Most commands are below the limit even so; the exact sum needs the page tables.
        if private + max(files, mapped) <= self._limit:
            return private + max(files, mapped)
        shares = [_proportional(pid) for pid in pids]
        private = sum(own for own, _ in shares)
        mapped = sum(shared for _, shared in shares)
        return private + max(files, mapped)  # files may be mapped: the sum would be too high

    def _memory_files(self, pids: list[int]) -> int:
        return sum(
            {
                status.st_ino: status.st_blocks * 512
                for status in open_files_of(pids)
                if status.st_dev == self._files_device
            }.values()
        )

    def _file_systems(self) -> int:
        total = 0
        for path in self._in_memory:
            try:
                status = os.statvfs(f"/proc/{self._first}/root{path}")
            except OSError:
                continue  # ended, or not accessible
            total += (status.f_blocks - status.f_bfree) * status.f_frsize
            total += (status.f_files - status.f_ffree) * _INODE
        return total


def _resident(pid: int) -> tuple[int, int]:
    """Return the process's own bytes, including page tables and swap, and its shared bytes."""
    lines = _sizes(f"/proc/{pid}/status")
    own = lines.get("RssAnon", 0) + lines.get("VmSwap", 0) + lines.get("VmPTE", 0)
    return own, lines.get("RssShmem", 0)


def _proportional(pid: int) -> tuple[int, int]:
    """Return the same as `_resident`, but count only a process's share of each shared page."""
    lines = _sizes(f"/proc/{pid}/smaps_rollup")
    if "Pss_Anon" not in lines:  # a process that this account may not inspect
        return _resident(pid)
    tables = _sizes(f"/proc/{pid}/status").get("VmPTE", 0)
    return lines["Pss_Anon"] + lines.get("SwapPss", 0) + tables, lines.get("Pss_Shmem", 0)


def _sizes(path: str) -> dict[str, int]:
    """Return the values of a file of /proc in bytes; empty if the process has ended."""
    try:
        text = Path(path).read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            found[name] = int(value[:-3]) * 1024
    return found


def _host_memory() -> tuple[int, int]:
    """Return the host's memory in bytes: the total, and what is available without swapping."""
    lines = _sizes("/proc/meminfo")
    return lines["MemTotal"], lines["MemAvailable"]


def _device_of_memory_files() -> int:
    descriptor = os.memfd_create("vel-device", os.MFD_CLOEXEC)
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)
