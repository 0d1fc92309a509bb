"""Whether a tree of files is what it was: a digest of what the kernel tells of each entry."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

MAX_ENTRIES = 50_000


def fingerprint(directories: Iterable[Path]) -> str:
    """The same text as long as nothing below `directories` has changed.

    Made of names, kinds, sizes, inode numbers and times of change, which no command can set: so no
    content is read, and a change that is taken back is a change. Links are not followed. A tree of
    more than `MAX_ENTRIES` never has the same text twice, nor has one that cannot be read.
    """
    digest = hashlib.sha256()
    count = 0
    unreadable: list[OSError] = []
    for number, directory in enumerate(directories):
        digest.update(f"{number}\0".encode())
        for place, names, files, descriptor in os.fwalk(directory, onerror=unreadable.append):
            names.sort()
            below = os.path.relpath(place, directory)
            for name in sorted([*names, *files]):
                count += 1
                if count > MAX_ENTRIES:
                    return secrets.token_hex(32)
                try:
                    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                except OSError as error:
                    unreadable.append(error)
                    continue
                told = (found.st_mode, found.st_size, found.st_ino, found.st_ctime_ns)
                digest.update(f"{below}/{name}\0{told}\0".encode("utf-8", "surrogateescape"))
    # A directory that a command takes away while it is read is a change, too.
    return secrets.token_hex(32) if unreadable else digest.hexdigest()
