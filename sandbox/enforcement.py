"""Everything that holds one command within its limits, by the strongest means of this host."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sandbox.account import Account
from sandbox.cgroups import CPU, MEMORY, Cgroups, CommandCgroup
from sandbox.policy import SandboxPolicy
from sandbox.rlimits import apply_rlimits
from sandbox.watchdog import CgroupWatch, Watch, over_memory
from sandbox.watchdog_disk import Base, DiskWatch
from sandbox.watchdog_memory import MemoryWatch

NICENESS = 10
"""Of commands where no control group shares out the processors."""

_OOM_SCORE = 1000
"""Of commands: the first that the kernel kills."""


class Enforcement:
    """The limits of one command. `prepare` before it may run, `end` when it is dead, always.

    Without `cgroups` its memory is watched and its processes are made nice. `base` is what all
    commands of one sandbox share.
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
        """Limit the first process, and so all that it will start. Raises OSError."""
        limits = self._policy.limits
        if self._cgroups is not None:
            self._group = self._cgroups.create(limits)
            self._group.attach(pid)
        # Courtesies, not guards: root in a container may lack the right to them.
        with suppress(PermissionError):
            # Should the host run out of memory, it is not the database that the kernel ends.
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
        """Why the kernel killed the command, if it was for a limit of the control group."""
        limit = self._policy.limits.memory_total
        if self._group is None or limit is None or not self._group.oom_kills():
            return None
        return over_memory(limit)

    def last_words(self) -> list[str]:
        """What the watches have to tell of a command that has ended."""
        return [word for watch in self.watches if (word := watch.last_word()) is not None]

    def end(self) -> None:
        """Free everything. Raises `SandboxError` when the control group cannot be removed."""
        try:
            for watch in self.watches:
                watch.close()
        finally:
            if self._group is not None:
                self._group.remove()
                self._group = None
