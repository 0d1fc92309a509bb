"""A control group for each command: what it may take in all, kept by the kernel.

Memory files, file systems in memory and socket buffers are charged to it too, which nothing else
sees in full. The directories bear the name of the process that made them, so that whoever comes
later can tell what a dead one left behind.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.policy import Limits
from sandbox.processes import DEATH_SECONDS

CPU, MEMORY, PIDS = "cpu", "memory", "pids"
CONTROLLERS = (MEMORY, PIDS, CPU)

_PREFIX = "vel-sandbox-"
_NAME = re.compile(_PREFIX + r"(?P<namespace>\d+)-(?P<pid>\d+)-(?P<start>\d+)-\d+")
_PERIOD_US = 100_000
_SMALLEST_QUOTA_US = 1_000
"""The kernel's."""

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Where this process can make control groups: for each controller the directory to do it in.

    Version 2 has one directory for all controllers.
    """

    version: int
    parents: Mapping[str, Path]

    def create(self, limits: Limits) -> CommandCgroup:
        """A group with `limits`, empty. Raises OSError, and then leaves none."""
        name = f"{_PREFIX}{_namespace()}-{os.getpid()}-{_start_time(os.getpid())}-{next(_numbers)}"
        group = CommandCgroup(
            self.version, {kind: parent / name for kind, parent in self.parents.items()}
        )
        try:
            group.make(limits)
        except BaseException:
            group.remove()
            raise
        return group

    def remove_stale(self) -> int:
        """Remove the groups of processes that have died; how many directories that were.

        A group that still holds processes is killed first. Groups made in another pid namespace
        are left to that one.
        """
        removed = 0
        for parent in set(self.parents.values()):
            for entry in _entries(parent):
                found = _NAME.fullmatch(entry.name)
                if found is None or int(found["namespace"]) != _namespace():
                    continue
                if _start_time(int(found["pid"])) == int(found["start"]):
                    continue
                CommandCgroup(self.version, {"": entry}).remove()
                removed += 1
        return removed


class CommandCgroup:
    """The control group of one command. `directories` by controller; version 2 repeats one."""

    def __init__(self, version: int, directories: Mapping[str, Path]) -> None:
        self.version = version
        self.directories = directories

    @property
    def name(self) -> str:
        return next(iter(self.directories.values())).name

    def make(self, limits: Limits) -> None:
        for directory in self._distinct():
            directory.mkdir()
        for kind, directory in self.directories.items():
            for file, value in _settings(self.version, kind, limits):
                _write(directory / file, value)
            if kind == MEMORY and limits.memory_total is not None:
                self._refuse_swap(directory, limits.memory_total)

    def _refuse_swap(self, directory: Path, memory: int) -> None:
        file, value = "memory.swap.max", 0
        if self.version == 1:
            file, value = "memory.memsw.limit_in_bytes", memory
        if (directory / file).exists():  # missing in a kernel that does not account for swap
            _write(directory / file, str(value))

    def attach(self, pid: int) -> None:
        """Put `pid`, and so all that it will start, in the group. Raises OSError."""
        for directory in self._distinct():
            _write(directory / "cgroup.procs", str(pid))

    def oom_kills(self) -> int:
        """How many of its processes the kernel killed because the group's memory was used up."""
        directory = self.directories.get(MEMORY)
        if directory is None:
            return 0
        file = "memory.oom_control" if self.version == 1 else "memory.events"
        for line in (directory / file).read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
        return 0  # a kernel before 4.13 does not count

    def remove(self) -> None:
        """Kill what is still in it, and remove it. Without effect where it is gone already.

        Raises `SandboxError` when it cannot be removed within ten seconds.
        """
        for directory in self._distinct():
            deadline = time.monotonic() + DEATH_SECONDS
            while not _removed(directory):
                if time.monotonic() > deadline:
                    raise SandboxError(
                        f"The control group {directory} does not become empty: a process in it "
                        "hangs in the kernel. Look at the disks and network mounts of this host."
                    )
                _kill_all(directory)
                time.sleep(0.001)  # the kernel lets go of the dead a moment after they died

    def _distinct(self) -> set[Path]:
        return set(self.directories.values())


def _settings(version: int, kind: str, limits: Limits) -> Iterator[tuple[str, str]]:
    """Files and values. Commands weigh half of what an ordinary process does."""
    if kind == PIDS and limits.processes is not None:
        yield "pids.max", str(limits.processes)
    if kind == MEMORY and limits.memory_total is not None:
        if version == 1:
            yield "memory.limit_in_bytes", str(limits.memory_total)
        else:
            yield "memory.max", str(limits.memory_total)
            yield "memory.oom.group", "1"
    if kind == CPU:
        yield ("cpu.shares", "512") if version == 1 else ("cpu.weight", "50")
        if limits.cpus is not None:
            quota = max(_SMALLEST_QUOTA_US, int(limits.cpus * _PERIOD_US))
            if version == 1:
                yield "cpu.cfs_period_us", str(_PERIOD_US)
                yield "cpu.cfs_quota_us", str(quota)
            else:
                yield "cpu.max", f"{quota} {_PERIOD_US}"


def _write(file: Path, value: str) -> None:
    # Without O_CREAT: a file that is not there is an error, not a new file.
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def _kill_all(directory: Path) -> None:
    for pid in (directory / "cgroup.procs").read_text().split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass


def _entries(parent: Path) -> list[Path]:
    with os.scandir(parent) as scan:
        return [parent / entry.name for entry in scan if entry.name.startswith(_PREFIX)]


def _namespace() -> int:
    """The pid namespace in which the numbers in the names mean something."""
    return os.stat("/proc/self/ns/pid").st_ino


def _start_time(pid: int) -> int | None:
    """Since boot, in clock ticks; together with the number it names a process for good."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()  # a process name may hold any bytes
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = line.rpartition(b")")[2].split()
    return None if fields[0] == b"Z" else int(fields[19])
