"""Measuring of the disk usage of a hostile tree, within a time limit."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from sandbox.directories.reopening import open_directory

MAX_DEPTH = 60
MAX_ENTRIES = 500_000


@dataclass(slots=True)
class TreeSize:
    """The size of a tree in bytes on disk. `files` does not count directories.

    If `is_complete` is False, the tree is larger, or a part of it cannot be read.
    """

    size: int = 0
    files: int = 0
    is_complete: bool = True


def tree_size(path: Path, seconds: float = 10.0) -> TreeSize:
    """Return the size of everything below `path`, measured for at most `seconds`.

    Does not follow links and does not raise.
    """
    total = TreeSize()
    try:
        descriptor = open_directory(path)
    except OSError:
        total.is_complete = False
        return total
    try:
        _add(descriptor, total, 1, time.monotonic() + seconds)
    finally:
        os.close(descriptor)
    return total


def _add(directory: int, total: TreeSize, depth: int, deadline: float) -> None:
    if depth > MAX_DEPTH:
        total.is_complete = False
        return
    try:
        with os.scandir(directory) as names:
            for entry in names:
                if total.files > MAX_ENTRIES or time.monotonic() > deadline:
                    total.is_complete = False
                    return
                total.size += entry.stat(follow_symlinks=False).st_blocks * 512
                if not entry.is_dir(follow_symlinks=False):
                    total.files += 1
                    continue
                below = open_directory(entry.name, directory)
                try:
                    _add(below, total, depth + 1, deadline)
                finally:
                    os.close(below)
    except OSError:
        total.is_complete = False
