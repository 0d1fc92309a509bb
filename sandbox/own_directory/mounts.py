"""The mounts that protect files from changes, as arguments of bubblewrap.

A mount point cannot be renamed or removed, but a directory above it can. So each directory between
the top and a protected file is bound to itself, which makes it a mount point, too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sandbox.account import Account
from sandbox.errors import SandboxSetupError
from sandbox.own_directory.inventory import Inventory, is_below

MOST = 256
"""The maximum number of mounts of one command. Each mount costs bubblewrap more than the last."""


class StaleInventory(Exception):
    """The directory has changed since it was scanned."""


def protecting_mounts(root: Path, target: str, found: Inventory, account: Account) -> list[str]:
    """Return bubblewrap's arguments that follow the mount of `root` at `target`.

    Raises `StaleInventory`, and `SandboxSetupError` for more mounts than a command may have.
    """
    writable: dict[str, bool] = {}
    for path in sorted(found.repositories | found.read_only):
        for above in _ancestors(path):
            writable.setdefault(above, True)
        if path:
            writable[path] = path not in found.read_only
    arguments: list[str] = []
    read_only: list[str] = []
    for path in sorted(writable, key=lambda path: path.split("/")):
        if is_below(path, read_only):
            continue
        is_writable = writable[path] and _may_enter(root / path, account)
        if not is_writable:
            read_only.append(path)
        how = "--bind" if is_writable else "--ro-bind"
        arguments += [how, f"{root}/{path}", f"{target}/{path}"]
    count = len(arguments) // 3
    if count > MOST:
        raise SandboxSetupError(
            f"{root} contains {count} files that other programs run, in too many directories "
            f"to protect each ({MOST} mounts). Use a smaller directory, or allow changes of some "
            "with --allow-write."
        )
    _require_no_links(root, writable)
    return arguments


def _ancestors(path: str) -> Iterator[str]:
    parts = path.split("/")
    for end in range(1, len(parts)):
        yield "/".join(parts[:end])


def _require_no_links(root: Path, paths: dict[str, bool]) -> None:
    """bubblewrap would follow a link while it still sees the host."""
    for path in paths:
        try:
            mode = os.stat(root / path, follow_symlinks=False).st_mode
        except OSError as error:
            raise StaleInventory(path) from error
        if stat.S_ISLNK(mode):
            raise StaleInventory(path)


def _may_enter(path: Path, account: Account) -> bool:
    """Whether bubblewrap, as `account`, can reach the contents of the directory."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise StaleInventory(str(path)) from error
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)
