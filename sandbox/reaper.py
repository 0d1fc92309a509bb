"""Killing sandboxes that outlived the process that watched them.

A command dies with its watcher, but for two instants of its start: while bubblewrap makes the
namespaces (what is left then waits for ever and runs nothing), and while it forks the command.
Whoever takes over the work of a dead process calls `kill_marked` before going on.
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
    """Kill every sandbox started with one of `markers`, and return when none is left.

    Returns how many processes were killed; 0 is the usual answer. An ordinary user reaches the
    processes of the own account, root all. Raises `SandboxError` when one does not die in 10 s.
    """
    wanted = frozenset(marked_argument(marker).encode() for marker in markers)
    if not wanted:
        return 0
    deadline = time.monotonic() + DEATH_SECONDS
    killed = 0
    # Again until none is found: one that was just starting may have gone on to make another.
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
    """pidfds by pid of the processes that bear a wanted mark and that this account may kill."""
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
        # Looked at again through the number only now that the pidfd holds the process: if the
        # number went to another one in between, the pidfd refers to a dead process.
        if _is_wanted(entry.name, wanted) and _may_kill(pidfd):
            found[int(entry.name)] = pidfd
        else:
            os.close(pidfd)
    return found


def _may_kill(pidfd: int) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except (PermissionError, ProcessLookupError):
        return False  # somebody else put our mark on an own process, or it is gone
    return True


def _is_wanted(pid: str, wanted: frozenset[bytes]) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False  # gone, or hidden because it is somebody else's
    return not wanted.isdisjoint(arguments)
