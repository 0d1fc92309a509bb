"""The per-process limits of a command, set from outside on its first process.

They are set after bubblewrap has created the user namespace: the kernel counts RLIMIT_NPROC
separately in each namespace, so the limit neither counts nor blocks the account's other processes.
All children inherit them, and without capabilities no process inside can raise them.
"""

from __future__ import annotations

import resource

from sandbox.account import Account
from sandbox.linux.thread_ids import real_ids_of
from sandbox.policy import Limits


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
