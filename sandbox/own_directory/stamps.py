"""Stamps: short texts that change with a file or a tree. Links are not followed.

Special files are not opened.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from itertools import islice
from typing import TYPE_CHECKING

from sandbox.directories.beneath import DIRECTORY, READ

if TYPE_CHECKING:
    from hashlib import _Hash

_READ_BYTES = 1024 * 1024
"""For a larger file, the stamp uses size and times."""
DEPTH = 60
"""The maximum depth of nested directories. Each level needs a descriptor during the walk."""


class ScanLimitReached(Exception):
    """Raised if a limit of the scan was reached; the text names the limit."""


class Allowance:
    """The entries and the time that one scan may still use."""

    def __init__(self, entries: int, seconds: float) -> None:
        self._entries = entries
        self._limit = entries
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def names(self, descriptor: int) -> list[os.DirEntry[str]]:
        """Return the entries of an open directory, sorted by name.

        Raises `ScanLimitReached` and OSError.
        """
        if time.monotonic() > self._deadline:
            raise ScanLimitReached(f"not scanned within {self._seconds:g} s")
        with os.scandir(descriptor) as entries:
            found = list(islice(entries, self._entries + 1))
        if len(found) > self._entries:
            raise ScanLimitReached(f"the scan had already seen {self._limit} names")
        self._entries -= len(found)
        return sorted(found, key=lambda entry: entry.name)


def read_text(name: str, parent: int, limit: int = _READ_BYTES) -> str | None:
    """Return the text of a regular file; None for a file over `limit` bytes and other entries."""
    try:
        descriptor = os.open(name, READ | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        return stream.read(limit).decode(errors="surrogateescape")


def text_stamp(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def entry_stamp(name: str, parent: int, allowance: Allowance, *, content: bool = True) -> str:
    """Return the stamp of a file, a link, or a directory with all its contents.

    Without `content`, the stamp contains a file's times instead of a hash of its content. Raises
    OSError and `ScanLimitReached`.
    """
    digest = hashlib.sha256()
    _add(digest, name, parent, allowance, content, 1)
    return digest.hexdigest()[:32]


def _add(
    digest: _Hash, name: str, parent: int, allowance: Allowance, content: bool, depth: int
) -> None:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    digest.update(os.fsencode(f"{name}\0{stat.S_IFMT(status.st_mode)}\0"))
    if stat.S_ISDIR(status.st_mode):
        if depth > DEPTH:
            raise ScanLimitReached(f"nested deeper than {DEPTH} directories")
        descriptor = os.open(name, DIRECTORY, dir_fd=parent)
        try:
            for entry in allowance.names(descriptor):
                _add(digest, entry.name, descriptor, allowance, content, depth + 1)
        finally:
            os.close(descriptor)
        digest.update(b"\0\0")
    elif stat.S_ISLNK(status.st_mode):
        digest.update(os.fsencode(os.readlink(name, dir_fd=parent)) + b"\0")
    elif stat.S_ISREG(status.st_mode):
        digest.update(b"%o\0" % stat.S_IMODE(status.st_mode))
        if not content or status.st_size > _READ_BYTES:
            times = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            digest.update(b"%d %d %d %d\0" % times)
        elif (text := read_text(name, parent)) is not None:
            digest.update(text_stamp(text).encode())
