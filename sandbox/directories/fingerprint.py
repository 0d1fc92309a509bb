"""Detection of changes in a tree of files, by a digest of the metadata of each entry."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from sandbox.directories.reopening import MAX_DEPTH, open_below, open_directory

MAX_ENTRIES = 50_000


def fingerprint(directories: Iterable[Path]) -> str:
    """Return a text that stays the same until an entry below `directories` changes.

    The text is a digest of names, types, sizes, inode numbers and change times (ctime). A command
    cannot set the change time, so the contents need not be read, and a change that was undone
    counts as a change. Links are not followed. The text is random, and so new each time, if a tree
    has more than `MAX_ENTRIES`, is too deep, or cannot be read.
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
                metadata = (found.st_mode, found.st_size, found.st_ino, found.st_ctime_ns)
                digest.update(path + f"\0{metadata}\0".encode())
    except OSError:
        # If a command removed a directory during the reading, the tree has changed.
        return secrets.token_hex(32)
    return digest.hexdigest()


def _entries(directory: Path) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield the path and status of each entry below `directory`, always in the same order."""
    top = open_directory(directory)
    try:
        pending: list[tuple[bytes, ...]] = [()]
        while pending:
            names = pending.pop()
            if len(names) > MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, "nested too deep", os.fspath(directory))
            descriptor = open_below(top, names)
            try:
                if names:  # only after opening the directory, because opening may change its mode
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
