"""Search for toolboxes, and locks on them while they are used."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.toolboxes.toolbox import (
    CURRENT,
    ENVIRONMENT,
    MANIFEST,
    Toolbox,
    ToolboxError,
    check_name,
    check_operators_own,
    is_name,
    mismatch,
    missing,
    parse_manifest,
)

_GENERATION = re.compile(r"[0-9a-f]{16}")
_MANIFEST_BYTES = 4_000_000
_TRIES, _PAUSE = 50, 0.02
"""How often, and with which pause in seconds, to retry a generation that is being removed."""


class HeldToolbox:
    """A toolbox that stays on disk as long as this object exists, even if the operator removes it.

    The lock also ends when the worker process ends.
    """

    def __init__(self, toolbox: Toolbox, lock: int) -> None:
        self.toolbox = toolbox
        self.release = weakref.finalize(self, os.close, lock)


def toolbox_names(base: Path) -> list[str]:
    """Return the names of all toolboxes in `base`, sorted, including unusable ones."""
    try:
        found = sorted(entry.name for entry in os.scandir(base) if is_name(entry.name))
    except FileNotFoundError:
        return []
    return [name for name in found if os.path.lexists(base / name / CURRENT)]


def find_toolbox(base: Path, name: str) -> Toolbox:
    """Return the newest generation of `name`, even if this host's Python cannot run it.

    Raises `ToolboxError` if there is no such toolbox, or if another account could have changed it.
    """
    held = _open(base, name)
    held.release()
    return held.toolbox


def hold_toolbox(base: Path, name: str) -> HeldToolbox:
    """Return the newest generation of `name`, locked against removal.

    Raises `ToolboxError` like `find_toolbox`, and if this host's Python cannot run the toolbox.
    """
    held = _open(base, name)
    problem = mismatch(held.toolbox)
    if problem is not None:
        held.release()
        raise ToolboxError(problem)
    return held


def _open(base: Path, name: str) -> HeldToolbox:
    check_name(name)
    for _ in range(_TRIES):
        with _directory(base, name) as top, _directory(name, name, top) as own:
            generation = _read_current(own, name)
            with _directory(generation, name, own) as directory:
                lock = _locked_manifest(directory, name)
                if lock is None:
                    time.sleep(_PAUSE)  # somebody is removing it: try again
                    continue
                try:
                    content = os.read(lock, _MANIFEST_BYTES)
                    toolbox = parse_manifest(content, name, generation, base / name / generation)
                    with _directory(ENVIRONMENT, name, directory):
                        return HeldToolbox(toolbox, lock)
                except BaseException:
                    os.close(lock)
                    raise
    raise ToolboxError(
        f"The toolbox {name!r} is locked by another process (lsof {base / name}/*/{MANIFEST}). "
        "Try again when that process has ended."
    )


@contextmanager
def _directory(path: str | Path, name: str, parent: int | None = None) -> Iterator[int]:
    """Open a directory, after checking that only the operator can write it."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(
            path.resolve() if isinstance(path, Path) else path, flags, dir_fd=parent
        )
    except FileNotFoundError:
        raise missing(name) from None
    except OSError as error:
        raise ToolboxError(
            f"The toolbox {name!r} cannot be used: {path} is not a plain directory "
            f"({error.strerror}). Links are not followed here; remove it and build it again."
        ) from error
    try:
        check_operators_own(os.fstat(descriptor), str(path), name)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_file(name: str, directory: int, toolbox: str) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        raise missing(toolbox) from None
    except OSError as error:
        raise ToolboxError(
            f"The toolbox {toolbox!r} cannot be used: its {name} is not a plain file "
            f"({error.strerror}). Build it again: vel toolbox create {toolbox} … --replace"
        ) from error
    status = os.fstat(descriptor)
    try:
        if not stat.S_ISREG(status.st_mode):
            raise ToolboxError(f"The toolbox {toolbox!r} is damaged: its {name} is not a file.")
        check_operators_own(status, name, toolbox)
    except ToolboxError:
        os.close(descriptor)
        raise
    return descriptor


def _read_current(own: int, name: str) -> str:
    descriptor = _read_file(CURRENT, own, name)
    try:
        generation = os.read(descriptor, 100).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
    if not _GENERATION.fullmatch(generation):
        raise ToolboxError(
            f"The toolbox {name!r} is damaged: it names no valid generation. Build it again: "
            f"vel toolbox create {name} … --replace"
        )
    return generation


def _locked_manifest(directory: int, name: str) -> int | None:
    """Return the open manifest under a shared lock; None if somebody removes the generation."""
    descriptor = _read_file(MANIFEST, directory, name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
