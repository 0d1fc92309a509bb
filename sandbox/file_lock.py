"""A lock that processes share, and that one thread may take several times over."""

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
    """Somebody else has held the lock all the time."""


class FileLock:
    """Excludes every other holder of the same file, in this process and in others.

    `patience` is how many seconds it waits before `LockTimeout`: a holder that was frozen must
    not hold a caller's thread for ever. The file and its directory are made with modes 0600 and
    0700. It ends with its holder's process.
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
            os.close(self._descriptor)  # which lets go of the lock
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
