"""The mechanism that enforces each limit on this host, as text for operators."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sandbox.linux.cgroups import CPU, MEMORY, PIDS, Cgroups
from sandbox.linux.enforcement import NICENESS

_ADVICE = (
    "Give Vel control groups: a systemd unit with Delegate=yes, or a container with a "
    "writable /sys/fs/cgroup."
)
_CAP_SYS_PTRACE = 19


@dataclass(frozen=True, slots=True)
class EnforcedLimit:
    """`firm` is false if a command can exceed the limit for a short time, or in part.

    `weakness` then describes by how much, and `advice` what to do.
    """

    limit: str
    by: str
    weakness: str = ""
    advice: str = ""

    @property
    def firm(self) -> bool:
        return not self.weakness


def enforced_limits(cgroups: Cgroups | None) -> tuple[EnforcedLimit, ...]:
    """`cgroups` is where commands get their own control groups; None if there is no such place."""
    group = "" if cgroups is None else f"cgroup v{cgroups.version}"
    kinds = set() if cgroups is None else set(cgroups.parents)
    return (
        EnforcedLimit("processes", f"{group} and rlimit" if PIDS in kinds else "rlimit"),
        EnforcedLimit("memory", f"{group} and rlimit") if MEMORY in kinds else _watched_memory(),
        EnforcedLimit("cpu", f"{group} and rlimit") if CPU in kinds else _shared_cpu(),
        EnforcedLimit("disk", "watchdog"),
        EnforcedLimit("file size", "rlimit and seccomp"),
        EnforcedLimit("open files", "rlimit"),
        EnforcedLimit("output", "watchdog"),
        EnforcedLimit("wall time", "watchdog"),
    )


def _watched_memory() -> EnforcedLimit:
    uncounted = "memory that a command hides in sockets is not counted"
    if os.geteuid() == 0 and not _has_capability(_CAP_SYS_PTRACE):
        uncounted = "without CAP_SYS_PTRACE memory files and /tmp are not counted"
    return EnforcedLimit(
        "memory",
        "watchdog and rlimit",
        f"a command can exceed the limit between two measurements, and {uncounted}.",
        _ADVICE,
    )


def _shared_cpu() -> EnforcedLimit:
    return EnforcedLimit(
        "cpu",
        f"nice {NICENESS}, rlimit and wall time",
        "a command can use every processor until its wall time limit.",
        _ADVICE,
    )


def _has_capability(number: int) -> bool:
    for line in Path("/proc/self/status").read_bytes().split(b"\n"):
        if line.startswith(b"CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False
