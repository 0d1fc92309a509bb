"""Directories that belong to a sandbox's account, created and entered without following links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.directories.beneath import DIRECTORY
from sandbox.directories.reopening import CHANGE, open_directory
from sandbox.errors import SandboxSetupError


@contextmanager
def opened(name: str | Path, parent: int | None = None) -> Iterator[int]:
    """Open a directory as a context manager that yields the descriptor.

    If `parent` is given, the owner's permissions that a command removed are restored.

    Args:
        name: A path, or the name of a directory in `parent`.
        parent: The descriptor of the parent directory.

    Raises:
        SandboxSetupError: The path is a link, or is not a directory.
    """
    try:
        if parent is None:
            descriptor = os.open(name, DIRECTORY)
        else:
            descriptor = open_directory(name, parent, CHANGE)
    except OSError as error:
        raise SandboxSetupError(
            f"{name} in the workspaces is not a plain directory ({error.strerror}). "
            "Links are not followed here; remove it."
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def make(parent: int, name: str, owner: int) -> None:
    """Create the directory `name` in `parent` for the account `owner`.

    An existing directory of `owner` or of this process is used: this process may have created it
    and not finished it.

    Raises:
        SandboxSetupError: The path is a link or not a directory, or belongs to another account.
    """
    try:
        os.mkdir(name, mode=0o700, dir_fd=parent)
    except FileExistsError:
        pass
    with opened(name, parent) as made:
        status = os.fstat(made)
        if status.st_uid not in (owner, os.geteuid()):
            raise SandboxSetupError(
                f"The workspace directory {name} belongs to uid {status.st_uid}; expected uid "
                f"{owner}. Give the workspace a new key, or chown the tree while nothing runs."
            )
        if status.st_uid != owner:
            os.fchown(made, owner, owner)
        if stat.S_IMODE(status.st_mode) != 0o700:
            os.fchmod(made, 0o700)


def make_private(root: Path, owner: int, *names: str) -> Path:
    """Return the path of the nested directory `names` below `root`; create missing parts.

    `root` is a prepared tree. The directory must be where no command can write: next to the areas
    of a workspace, not inside one. Raises `SandboxSetupError`.
    """
    with opened(root) as top:
        make(top, names[0], owner)
    below = root / names[0]
    return make_private(below, owner, *names[1:]) if len(names) > 1 else below
