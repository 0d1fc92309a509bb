"""Kill sandboxes that outlived the process that watched them.

A command dies with its watcher, with two exceptions during its start: while bubblewrap creates the
namespaces (the remaining process waits for ever and runs nothing), and while it forks the command.
A process that takes over the work of a dead one must first call `kill_marked`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.markers import marked_argument
from sandbox.processes import DEATH_SECONDS, hangs_in_the_kernel, send_kill, wait_readable


def kill_marked(markers: Collection[str]) -> int:
    """Kill every sandbox started with one of `markers`, and return when all are dead.

    Returns the number of killed processes, which is usually 0. An ordinary user can kill only
    processes of the same account, root all. Raises `SandboxError` if a process does not die within
    10 seconds.
    """
    wanted = frozenset(marked_argument(marker).encode() for marker in markers)
    if not wanted:
        return 0
    deadline = time.monotonic() + DEATH_SECONDS
    killed = 0
    # Repeat until no process is found: a starting process may have created another one.
    while found := _open_marked(wanted):
        try:
            for pidfd in found.values():
                send_kill(pidfd)
            for pid, pidfd in found.items():
                if not wait_readable(pidfd, max(0.0, deadline - time.monotonic())):
                    raise SandboxError(hangs_in_the_kernel(pid))
        finally:
            for pidfd in found.values():
                os.close(pidfd)
        killed += len(found)
    return killed


def _open_marked(wanted: frozenset[bytes]) -> dict[int, int]:
    """Return pidfds by pid of the processes with a wanted marker that this account may kill."""
    found: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        if not _is_wanted(entry.name, wanted):
            continue
        try:
            pidfd = os.pidfd_open(int(entry.name))
        except ProcessLookupError:
            continue
        # Check again now that the pidfd refers to the process: if the number was reused in between,
        # the pidfd refers to a dead process.
        if _is_wanted(entry.name, wanted) and _may_kill(pidfd):
            found[int(entry.name)] = pidfd
        else:
            os.close(pidfd)
    return found


def _may_kill(pidfd: int) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except (PermissionError, ProcessLookupError):
        return False  # another account copied our marker, or the process has ended
    return True


def _is_wanted(pid: str, wanted: frozenset[bytes]) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False  # ended, or hidden because it belongs to another account
    return not wanted.isdisjoint(arguments)
