"""Removing unpacked skills that no run needs. The database has them all: they are made again."""

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
"""What was begun and not finished so long ago was left by a process that died."""


def prune_store(keep: Collection[str], *, older_than: float, apply: bool) -> list[str]:
    """Remove sets that nobody asked for in the last `older_than` seconds, except `keep` (keys).

    Then packages that no set has, and what dead processes left. Returns what went, or with `apply`
    false would go, as paths in the store. Nothing is unpacked meanwhile. Raises OSError.
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
    """Those that no set has; sets link their files, so the inode of SKILL.md tells."""
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
    """Of its SKILL.md; 0 where that is not there, which no package of a set has."""
    try:
        return (package / SKILL_FILE).lstat().st_ino
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory)) if directory.is_dir() else []


def _remove(path: Path) -> None:
    """Nothing hostile lies here: this account made it, and commands cannot write to it."""
    shutil.rmtree(path)
