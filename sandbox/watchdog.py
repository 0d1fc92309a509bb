"""Looking at a running command now and then, for limits that the kernel does not keep itself."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from sandbox.cgroups import CommandCgroup

_CHECK_SECONDS = 0.1


class Watch(ABC):
    """One thing to look at. `due` is when, as `time.monotonic` has it; `look` moves it on."""

    due: float

    @abstractmethod
    def look(self) -> str | None:
        """Why the command must be killed, as the rest of "killed: …"; None while it need not."""

    def last_word(self) -> str | None:
        """What to tell once everything of the command is dead; None for nothing."""
        return None

    def close(self) -> None:
        """Free what it holds. Called once, whatever the ending."""
        return None


class CgroupWatch(Watch):
    """The kernel kills at the limit, in version 1 one process only; then the others go too."""

    def __init__(self, group: CommandCgroup, limit: int) -> None:
        self._group = group
        self._limit = limit
        self.due = time.monotonic() + _CHECK_SECONDS

    def look(self) -> str | None:
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
    """`first` and all its descendants, as far as they live: everything in its pid namespace.

    A process whose parent died is the first one's child. What starts meanwhile may be missed.
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
    """The status of each file that is open in one of `pids`, without the names.

    Of processes that this account may not look into nothing is said: as root that takes
    CAP_SYS_PTRACE, which containers lack.
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
                continue  # closed meanwhile
