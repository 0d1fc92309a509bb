"""File descriptors that pass bytes to a child process without a file on disk."""

from __future__ import annotations

import fcntl
import os
from types import TracebackType


def sealed_memory(name: str, content: bytes) -> int:
    """Return a descriptor of an in-memory file with `content`, which no process can change.

    The descriptor is at the start of the content.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(
            descriptor,
            fcntl.F_ADD_SEALS,
            fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE,
        )
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class Descriptors:
    """Descriptors that are closed together when the `with` block ends, also after an error."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def add(self, descriptor: int) -> int:
        self._open.add(descriptor)
        return descriptor

    def keep(self, descriptor: int) -> int:
        """Leave `descriptor` open when the block ends; the caller now owns it."""
        self._open.remove(descriptor)
        return descriptor

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
