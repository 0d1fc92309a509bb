"""Which means keeps each limit on this host, for people to read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sandbox.cgroups import CPU, MEMORY, PIDS, Cgroups
from sandbox.enforcement import NICENESS

_ADVICE = (
    "Give Vel control groups: a systemd unit with Delegate=yes, or a container whose "
    "/sys/fs/cgroup can be written."
)
_CAP_SYS_PTRACE = 19


@dataclass(frozen=True, slots=True)
class EnforcedLimit:
    """`firm` is false where a command can go over the limit for a moment, or in part.

    `weakness` then says how far, and `advice` what to do.
    """

    limit: str
    by: str
    weakness: str = ""
    advice: str = ""

    @property
    def firm(self) -> bool:
        return not self.weakness


def enforced_limits(cgroups: Cgroups | None) -> tuple[EnforcedLimit, ...]:
    """`cgroups` is where commands get control groups of their own, None for nowhere."""
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
    seen = "what a command hides in sockets is not counted"
    if os.geteuid() == 0 and not _has_capability(_CAP_SYS_PTRACE):
        seen = "without CAP_SYS_PTRACE memory files and /tmp are not counted"
    return EnforcedLimit(
        "memory",
        "watchdog and rlimit",
        f"a command can go over the limit between two looks, and {seen}.",
        _ADVICE,
    )


def _shared_cpu() -> EnforcedLimit:
    return EnforcedLimit(
        "cpu",
        f"nice {NICENESS}, rlimit and wall time",
        "until its wall time a command may use every processor.",
        _ADVICE,
    )


def _has_capability(number: int) -> bool:
    for line in Path("/proc/self/status").read_bytes().split(b"\n"):
        if line.startswith(b"CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False
