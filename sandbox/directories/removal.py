"""Deletion of a hostile tree of any depth and with any modes, without following links."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sandbox.directories.reopening import CHANGE, open_directory


def remove_tree(path: Path) -> None:
    """Delete the directory `path` and all its contents, while no command runs in it.

    Empties one directory at a time. Nested directories are first moved up, so a tree of any depth
    needs one descriptor and no recursion. Raises OSError if `path` is a link, or if this account
    may not delete an entry. A missing path is not an error.
    """
    try:
        top = open_directory(path, needs=CHANGE)
    except FileNotFoundError:
        return
    try:
        _clear_files(top)
        while names := os.listdir(top):
            for name in names:
                _empty(top, name)
    finally:
        os.close(top)
    os.rmdir(path)


def _empty(top: int, name: str) -> None:
    """Remove the directory `name` of `top`, after moving its subdirectories up to `top`."""
    directory = open_directory(name, top, CHANGE)
    try:
        for nested in _clear_files(directory):
            # Moving a directory changes its `..` entry, which needs write permission in it.
            os.close(open_directory(nested, directory, CHANGE))
            os.rename(nested, f"d-{secrets.token_hex(12)}", src_dir_fd=directory, dst_dir_fd=top)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=top)


def _clear_files(directory: int) -> list[str]:
    """Unlink all entries except directories. Return the names of the directories."""
    nested = []
    with os.scandir(directory) as found:
        entries = list(found)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            nested.append(entry.name)
        else:
            os.unlink(entry.name, dir_fd=directory)
    return nested
