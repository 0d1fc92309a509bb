"""The files of an environment: their digest, their modes, and a check for changes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.linux.namespace import PYTHON
from sandbox.toolboxes.toolbox import Toolbox, ToolboxError, mismatch

_CHUNK = 1 << 20
_ALLOWED_LINKS = {"bin/python3": PYTHON, "bin/python": "python3", "lib64": "lib"}


def verify_toolbox(toolbox: Toolbox) -> list[str]:
    """Return the problems of a toolbox, each with a solution; empty if nothing has changed.

    Reads every file, which takes about a second for 300 MB.
    """
    again = f"Build it again: vel toolbox create {toolbox.name} … --replace"
    problems = []
    try:
        if (outdated := mismatch(toolbox)) is not None:
            problems.append(outdated)
    except SandboxUnavailable as error:
        problems.append(str(error))
    try:
        digest, _ = measure(toolbox.environment)
    except (OSError, ToolboxError) as error:
        return [*problems, f"{error} {again}"]
    if digest != toolbox.digest:
        problems.append(f"The files of the toolbox {toolbox.name!r} were changed. {again}")
    return problems


def settle(environment: Path) -> None:
    """Set the final mode of every file: readable by all, writable only by the operator.

    Raises `ToolboxError` for files that do not belong into a toolbox.
    """
    environment.chmod(0o755)
    for path, status in _walk(environment):
        if not stat.S_ISLNK(status.st_mode):
            executable = stat.S_ISDIR(status.st_mode) or status.st_mode & 0o111
            path.chmod(0o755 if executable else 0o644)


def measure(environment: Path) -> tuple[str, int]:
    """Return the digest of all names, modes and contents, and the size in bytes.

    Raises `ToolboxError` for files that do not belong into a toolbox, or that others could write.
    """
    found = hashlib.sha256()
    size = 0
    for path, status in _walk(environment):
        name = os.fsencode(path.relative_to(environment))
        found.update(b"%o %d " % (status.st_mode, len(name)) + name + b"\0")
        if stat.S_ISLNK(status.st_mode):
            found.update(os.fsencode(path.readlink()) + b"\0")
            continue
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise ToolboxError(f"{path} can be written by others.")
        if stat.S_ISREG(status.st_mode):
            size += status.st_size
            found.update(b"%d\0" % status.st_size)
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    found.update(chunk)
    return found.hexdigest(), size


def _walk(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield everything below `directory`, in order.

    Raises `ToolboxError` for entries that are neither files, directories nor links.
    """
    yield from _walk_below(directory, directory)


def _walk_below(directory: Path, root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for entry in sorted(os.scandir(directory), key=lambda entry: os.fsencode(entry.name)):
        path = Path(entry.path)
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            _check_link(path, root)
        elif not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise ToolboxError(f"{path} is neither a file nor a directory.")
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            raise ToolboxError(f"{path} would run with the rights of its owner (set-id).")
        yield path, status
        if stat.S_ISDIR(status.st_mode):
            yield from _walk_below(path, root)


def _check_link(path: Path, root: Path) -> None:
    """Raise `ToolboxError` if a link leads out of the environment or to a directory.

    Links that the environment itself needs are allowed.
    """
    name, target = str(path.relative_to(root)), os.readlink(path)
    inside = os.path.normpath(path.parent / target).startswith(f"{root}/")
    if _ALLOWED_LINKS.get(name) != target and (os.path.isabs(target) or not inside):
        raise ToolboxError(f"{path} is a link to {target}, which is outside the toolbox.")
