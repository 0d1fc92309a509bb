"""Helpers for process ids and pidfds, and for ending processes."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

DEATH_SECONDS = 10.0
"""Time limit in seconds for a process to die of SIGKILL. A longer time is a fault of the host."""


def send_kill(pidfd: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass  # dead, and reaped by its parent


def hangs_in_the_kernel(pid: int) -> str:
    return (
        f"Process {pid} of a sandbox did not die within {DEATH_SECONDS:g} s of SIGKILL. "
        "It hangs in the kernel; check the disks and network mounts of this host."
    )


def wait_readable(descriptor: int, seconds: float) -> bool:
    """Return whether the descriptor becomes readable within `seconds`.

    A pidfd is readable when its process is dead. (`select` cannot use descriptors over 1023.)
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def parent_of(pid: int) -> int | None:
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()  # a process name can contain any bytes
    except FileNotFoundError:
        return None
    return int(line.rpartition(b")")[2].split()[1])


def kill_children(pid: int) -> None:
    """Kill the children of `pid`. Meanwhile, `pid` must not reap them."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return  # it is dead, or this kernel has no such file
    for child in text.split():
        try:
            os.kill(int(child), signal.SIGKILL)
        except ProcessLookupError:
            pass


def reap_if_own(pidfd: int) -> None:
    """Reap an orphaned first process of a sandbox, if it is a child of this process.

    This is so if this process is pid 1 of a container.
    """
    try:
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        pass
