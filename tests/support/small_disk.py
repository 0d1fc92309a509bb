"""A small real file system for a test: a tmpfs in a separate mount namespace.

An ordinary account can use it if it may create user namespaces, which bubblewrap also requires. A
process that is started `inside` has the file system at `place`, and its user ID is 0.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import process_guard
from tests.support.hang import HANG

MB = 1_000_000
_MOUNT = 'mount -t tmpfs -o mode=711,size="$1" vel-test "$0" && echo mounted && read end'
_CHUNK = 256 * 1024


class SmallDisk:
    """A mounted file system. `free` and `fill` work from outside of its namespace."""

    def __init__(self, place: Path, holder: int) -> None:
        self.place = place
        self.holder = holder
        self._fillings = 0

    @property
    def inside(self) -> list[str]:
        """Return the start of a command line that runs in the namespace."""
        join = ["-m"] if os.geteuid() == 0 else ["-U", "--preserve-credentials", "-m"]
        return ["nsenter", "-t", str(self.holder), *join, "--"]

    @property
    def seen(self) -> Path:
        """Return the file system's path for other processes. SQLite cannot open files by it."""
        return Path(f"/proc/{self.holder}/root{self.place}")

    @property
    def free(self) -> int:
        status = os.statvfs(self.seen)
        return status.f_bavail * status.f_frsize

    def fill(self, leaving: int = 0) -> None:
        """Write until only `leaving` bytes are free."""
        self._fillings += 1
        with (self.seen / f"filling-{self._fillings}").open("wb", buffering=0) as file:
            while (more := self.free - leaving) > 0:
                try:
                    file.write(bytes(min(more, _CHUNK)))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return

    def clear(self) -> None:
        """Delete all files that `fill` wrote."""
        for file in self.seen.glob("filling-*"):
            file.unlink()


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[SmallDisk]:
    """Mount a file system of `size` bytes at the directory `place`, for processes inside."""
    place.mkdir(mode=0o711, parents=True, exist_ok=True)
    own = ["-m"] if os.geteuid() == 0 else ["-U", "-r", "-m"]
    holder = subprocess.Popen(
        ["unshare", *own, "sh", "-c", _MOUNT, str(place), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process_guard.share(holder.pid)
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "mounted\n"
        yield SmallDisk(place, holder.pid)
    finally:
        holder.stdin.close()
        holder.wait(timeout=HANG)
        holder.stdout.close()
