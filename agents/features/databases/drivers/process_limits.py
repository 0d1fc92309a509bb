"""The limits of a helper process: memory, files, time, and the life of its worker."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

MEMORY_BYTES = 1536 * 1024**2
"""Memory that a helper can write. The kernel refuses more: a statement fails, the host is safe."""
_ADDRESS_BYTES = 8 * 1024**3
"""DuckDB reserves addresses that it does not use."""
FILE_BYTES = 1024**3
"""The longest file that a statement may write: the temporary files of a large sort."""
_OPEN_FILES = 128
_WORN_BYTES = 512 * 1024**2
_PR_SET_PDEATHSIG = 1


def die_with(worker: int) -> None:
    """Let this process end when its worker ends, for any reason, but not before.

    On Linux the kernel kills it; elsewhere it ends when its pipe is closed. Signals for the
    worker's process group are ignored: a worker that drains needs its helpers.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker:
        os._exit(1)


def bound_resources() -> None:
    """Bound memory and files. Only the length of files can be changed later."""
    _bound(resource.RLIMIT_CORE, 0)
    _bound(resource.RLIMIT_NOFILE, _OPEN_FILES)
    bound_files(FILE_BYTES)
    if sys.platform == "linux":  # macOS refuses it
        _bound(resource.RLIMIT_DATA, MEMORY_BYTES)
        _bound(resource.RLIMIT_AS, _ADDRESS_BYTES)


def bound_files(size: int) -> None:
    """Limit the length of every file that is written from now on."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (_lower(size, hard), hard))


def _bound(limit: int, value: int) -> None:
    """Lower a limit for good. The worker can have a lower one, which stays."""
    value = _lower(value, resource.getrlimit(limit)[1])
    resource.setrlimit(limit, (value, value))


def _lower(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def end_after(seconds: float) -> None:
    """Make the kernel end this process after this many seconds; 0 cancels the timer.

    It works while a library function runs, and while the worker is frozen.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def is_worn() -> bool:
    """Return whether this process keeps too much memory for another statement."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > _WORN_BYTES
    with open("/proc/self/statm", encoding="ascii") as statm:
        data = int(statm.read().split()[5])  # as RLIMIT_DATA counts
    return data * resource.getpagesize() > _WORN_BYTES
