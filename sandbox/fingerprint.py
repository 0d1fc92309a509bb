"""Whether a tree of files is what it was: a digest of what the kernel tells of each entry."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from sandbox.quota import MAX_DEPTH
from sandbox.reopening import open_below, open_directory

MAX_ENTRIES = 50_000


def fingerprint(directories: Iterable[Path]) -> str:
    """The same text as long as nothing below `directories` has changed.

    Made of names, kinds, sizes, inode numbers and times of change, which no command can set: so no
    content is read, and a change that is taken back is a change. Links are not followed. A tree of
    more than `MAX_ENTRIES` never has the same text twice, nor has one that is too deep or that
    cannot be read.
    """
    digest = hashlib.sha256()
    count = 0
    try:
        for number, directory in enumerate(directories):
            digest.update(f"{number}\0".encode())
            for path, found in _entries(directory):
                count += 1
                if count > MAX_ENTRIES:
                    return secrets.token_hex(32)
                told = (found.st_mode, found.st_size, found.st_ino, found.st_ctime_ns)
                digest.update(path + f"\0{told}\0".encode())
    except OSError:
        # A directory that a command takes away while it is read is a change, too.
        return secrets.token_hex(32)
    return digest.hexdigest()


def _entries(directory: Path) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield the path and status of what lies below `directory`, always in the same order."""
    top = open_directory(directory)
    try:
        pending: list[tuple[bytes, ...]] = [()]
        while pending:
            names = pending.pop()
            if len(names) > MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, "nested too deep", os.fspath(directory))
            descriptor = open_below(top, names)
            try:
                if names:  # after it was opened, which may have changed its mode
                    yield b"/".join(names), os.fstat(descriptor)
                for name in sorted(map(os.fsencode, os.listdir(descriptor))):
                    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        pending.append((*names, name))
                    else:
                        yield b"/".join((*names, name)), found
            finally:
                os.close(descriptor)
    finally:
        os.close(top)
