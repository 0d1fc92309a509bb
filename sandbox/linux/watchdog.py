"""Periodic checks of a running command, for limits that the kernel does not enforce itself."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from sandbox.linux.cgroups import CommandCgroup
from sandbox.watch import Watch

_CHECK_SECONDS = 0.1


class CgroupWatch(Watch):
    """Kills the whole command if the kernel killed one of its processes at the memory limit."""

    def __init__(self, group: CommandCgroup, limit: int) -> None:
        self._group = group
        self._limit = limit
        self.due = time.monotonic() + _CHECK_SECONDS

    def check(self) -> str | None:
        self.due = time.monotonic() + _CHECK_SECONDS
        return over_memory(self._limit) if self._group.oom_kills() else None


def over_memory(limit: int) -> str:
    return f"more than {in_units(limit)} of memory in all"


def in_units(size: int) -> str:
    for unit, factor in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size:,} bytes"


def processes_of(first: int) -> list[int]:
    """Return `first` and all its living descendants: all processes in its pid namespace.

    A process whose parent died becomes a child of the first one. New processes may be missed.
    """
    found, pending = [], [first]
    while pending:
        pid = pending.pop()
        found.append(pid)
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except (FileNotFoundError, ProcessLookupError):
            continue
        for thread in threads:
            pending += _children(pid, thread)
    return found


def _children(pid: int, thread: str) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            return [int(child) for child in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def open_files_of(pids: Iterable[int]) -> Iterator[os.stat_result]:
    """Yield the status of each open file of the processes `pids`.

    Processes that this account may not inspect are omitted. Root needs CAP_SYS_PTRACE to inspect
    them, which containers lack.
    """
    for pid in pids:
        directory = f"/proc/{pid}/fd"
        try:
            names = os.listdir(directory)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        for name in names:
            try:
                yield os.stat(f"{directory}/{name}")
            except OSError:
                continue  # closed since it was listed
