"""A lock between processes, which one thread can take several times (re-entrant)."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path
from types import TracebackType

_FIRST_PAUSE = 0.001
_LAST_PAUSE = 0.05


class LockTimeout(Exception):
    """Raised if another holder kept the lock for the whole waiting time."""


class FileLock:
    """Lock on a file, which excludes other threads of this process and other processes.

    `patience` is the waiting time in seconds before `LockTimeout`, because a frozen holder must not
    block a caller's thread for ever. The file and its directory are created with modes 0600 and
    0700. The lock ends when the process of its holder ends.
    """

    def __init__(self, path: Path, patience: float = 30.0) -> None:
        self.path = path
        self.patience = patience
        self._threads = threading.RLock()
        self._depth = 0
        self._descriptor = -1

    def __enter__(self) -> FileLock:
        if not self._threads.acquire(timeout=self.patience):
            raise LockTimeout(str(self.path))
        try:
            if self._depth == 0:
                self._descriptor = self._open_locked()
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            os.close(self._descriptor)  # closing the file releases the lock
        self._threads.release()

    def _open_locked(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, flags, 0o600)
        try:
            deadline = time.monotonic() + self.patience
            pause = _FIRST_PAUSE
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return descriptor
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise LockTimeout(str(self.path)) from None
                time.sleep(pause)
                pause = min(pause * 2, _LAST_PAUSE)
        except BaseException:
            os.close(descriptor)
            raise
