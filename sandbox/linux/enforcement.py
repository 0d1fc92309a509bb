"""Enforcement of the limits of one command, with the strongest mechanism that this host has.

Limits per process are set from outside on the command's first process, after bubblewrap has created
the user namespace. The kernel counts RLIMIT_NPROC separately in each namespace, so the limit
neither counts nor blocks the account's other processes. All children inherit these limits, and
without capabilities no process inside can raise them.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

from sandbox.account import Account
from sandbox.linux.cgroups import CPU, MEMORY, Cgroups, CommandCgroup
from sandbox.linux.thread_ids import real_ids_of
from sandbox.linux.watchdog import CgroupWatch, over_memory
from sandbox.linux.watchdog_disk import Base, DiskWatch
from sandbox.linux.watchdog_memory import MemoryWatch
from sandbox.policy import Limits, SandboxPolicy
from sandbox.watch import Watch

NICENESS = 10
"""The niceness of commands on a host where no control group divides the processors."""

_OOM_SCORE = 1000
"""For commands: the kernel kills them first."""


class Enforcement:
    """The limits of one command. Call `prepare` before it may run, and always `end` after it.

    Without `cgroups`, a watchdog measures the memory of the command, and its processes get a lower
    priority. `base` is the state that all commands of one sandbox share.
    """

    def __init__(
        self,
        policy: SandboxPolicy,
        account: Account,
        cgroups: Cgroups | None,
        base: Base | None = None,
    ) -> None:
        self._policy = policy
        self._account = account
        self._cgroups = cgroups
        self._base = base
        self._group: CommandCgroup | None = None
        self.watches: list[Watch] = []

    def prepare(self, pid: int) -> None:
        """Limit the command's first process, and so all its later children. Raises OSError."""
        limits = self._policy.limits
        if self._cgroups is not None:
            self._group = self._cgroups.create(limits)
            self._group.attach(pid)
        # The next two are not security limits: root in a container may lack the permission.
        with suppress(PermissionError):
            # If the host runs out of memory, the kernel should not kill the database.
            Path(f"/proc/{pid}/oom_score_adj").write_text(str(_OOM_SCORE))
            if self._cgroups is None or CPU not in self._cgroups.parents:
                os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
        apply_rlimits(pid, self._account, limits)
        if limits.memory_total is not None:
            if self._group is not None and MEMORY in self._group.directories:
                self.watches.append(CgroupWatch(self._group, limits.memory_total))
            else:
                self.watches.append(MemoryWatch(pid, limits.memory_total, self._policy.mounts))
        if limits.disk is not None or limits.files is not None:
            self.watches.append(DiskWatch(pid, self._policy.mounts, limits, self._base))

    def overstepped(self) -> str | None:
        """Return why the kernel killed the command, if it reached a limit of its control group."""
        limit = self._policy.limits.memory_total
        if self._group is None or limit is None or not self._group.oom_kills():
            return None
        return over_memory(limit)

    def last_words(self) -> list[str]:
        """Return the messages of all watches about a command that has ended."""
        return [word for watch in self.watches if (word := watch.last_word()) is not None]

    def end(self) -> None:
        """Free all resources. Raises `SandboxError` if the control group cannot be removed."""
        try:
            for watch in self.watches:
                watch.close()
        finally:
            if self._group is not None:
                self._group.remove()
                self._group = None


def apply_rlimits(pid: int, account: Account, limits: Limits) -> None:
    """Set the limits of `pid`, which runs as `account`. Raises OSError if that fails."""
    wanted = {
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_AS: limits.memory,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_CORE: 0,
    }
    with real_ids_of(account):
        for kind, value in wanted.items():
            if value is None:
                continue
            _, hard = resource.prlimit(pid, kind)
            ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(pid, kind, (ceiling, ceiling))
