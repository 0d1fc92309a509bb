"""Control groups: the kernel enforces the total limits of each command.

The kernel also charges memory files, file systems in memory and socket buffers to the group; no
other measurement counts all of them. The directory name contains the id of the process that created
the group, so that a later process can find the groups of dead processes.
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
"""The smallest quota that the kernel accepts."""

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The places where this process can create control groups: a directory for each controller.

    Version 2 has one directory for all controllers.
    """

    version: int
    parents: Mapping[str, Path]

    def create(self, limits: Limits) -> CommandCgroup:
        """Create an empty group with `limits`. Raises OSError; in this case no group is left."""
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
        """Remove the groups of dead processes. Return the number of removed directories.

        Processes that are still in such a group are killed first. Groups of another pid namespace
        are left alone.
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
    """The control group of one command.

    `directories` maps controllers to directories; in version 2 all directories are the same.
    """

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
        if (directory / file).exists():  # missing if the kernel does not account for swap
            _write(directory / file, str(value))

    def attach(self, pid: int) -> None:
        """Move `pid`, and so all its later children, into the group. Raises OSError."""
        for directory in self._distinct():
            _write(directory / "cgroup.procs", str(pid))

    def oom_kills(self) -> int:
        """Return how many processes the kernel killed because the group had no memory left."""
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
        """Kill the processes in the group and remove it. Does nothing if it is already removed.

        Raises `SandboxError` if the group cannot be removed within ten seconds.
        """
        for directory in self._distinct():
            deadline = time.monotonic() + DEATH_SECONDS
            while not _removed(directory):
                if time.monotonic() > deadline:
                    raise SandboxError(
                        f"The control group {directory} does not become empty: a process in it "
                        "hangs in the kernel. Check the disks and network mounts of this host."
                    )
                _kill_all(directory)
                time.sleep(0.001)  # the kernel releases dead processes with a short delay

    def _distinct(self) -> set[Path]:
        return set(self.directories.values())


def _settings(version: int, kind: str, limits: Limits) -> Iterator[tuple[str, str]]:
    """Yield the files of a group and the values to write.

    Commands get half the CPU weight of ordinary processes.
    """
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
    # Open without O_CREAT, so that a missing file is an error and no new file appears.
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
    """Return the pid namespace of the process ids in the group names."""
    return os.stat("/proc/self/ns/pid").st_ino


def _start_time(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; None if it has ended.

    Together with the pid, the start time identifies a process uniquely.
    """
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()  # a process name can contain any bytes
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = line.rpartition(b")")[2].split()
    return None if fields[0] == b"Z" else int(fields[19])
