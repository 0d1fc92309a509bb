"""Remove unpacked skills that no run needs. Vel can unpack them again from the database."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path

from skills_app.library.package import SKILL_FILE
from skills_app.library.store.store import held_store, used_mark
from skills_app.settings import SkillSettings

LEFTOVER_SECONDS = 86_400.0
"""The age in seconds from which unfinished work counts as left by a dead process."""


def prune_store(keep: Collection[str], *, older_than: float, apply: bool) -> list[str]:
    """Remove the sets that no run requested in the last `older_than` seconds, except `keep`.

    `keep` has keys of sets. Also removes packages without a set, and leftovers of dead processes.
    Until it returns, other processes that want to unpack skills wait. Returns the removed paths in
    the store; without `apply`, the paths that would be removed. Raises OSError.
    """
    store = SkillSettings.now().store_directory
    if not store.is_dir():
        return []
    with held_store(store, exclusive=True):
        gone = _old_sets(store, keep, older_than) + _leftovers(store)
        if apply:
            for path in gone:
                _remove(store / path)
                if path.startswith("sets/"):
                    used_mark(store, path.removeprefix("sets/")).unlink(missing_ok=True)
        unused = _unused_packages(store, set(gone))
        if apply:
            for path in unused:
                _remove(store / path)
        return gone + unused


def _old_sets(store: Path, keep: Collection[str], older_than: float) -> list[str]:
    before = time.time() - older_than
    found = []
    for name in _names(store / "sets"):
        if name.startswith(".") or name in keep:
            continue
        mark = used_mark(store, name)
        used = (mark if mark.exists() else store / "sets" / name).stat().st_mtime
        if used < before:
            found.append(f"sets/{name}")
    return found


def _leftovers(store: Path) -> list[str]:
    before = time.time() - LEFTOVER_SECONDS
    return [
        f"{part}/{name}"
        for part in ("sets", "packages")
        for name in _names(store / part)
        if name.startswith(".") and (store / part / name).lstat().st_ctime < before
    ]


def _unused_packages(store: Path, gone: Collection[str]) -> list[str]:
    """Return the packages that no set uses, as paths in the store.

    Files of sets are hard links to those of packages, so both have the same inode of SKILL.md.
    """
    linked = {
        _inode(store / "sets" / name / skill)
        for name in _names(store / "sets")
        if not name.startswith(".") and f"sets/{name}" not in gone
        for skill in _names(store / "sets" / name)
    }
    return [
        f"packages/{name}"
        for name in _names(store / "packages")
        if not name.startswith(".") and _inode(store / "packages" / name) not in linked
    ]


def _inode(package: Path) -> int:
    """Return the inode of the package's SKILL.md, 0 if the file is missing."""
    try:
        return (package / SKILL_FILE).lstat().st_ino
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory)) if directory.is_dir() else []


def _remove(path: Path) -> None:
    """Remove a directory. This is safe, because only this account writes to it, not commands."""
    shutil.rmtree(path)
