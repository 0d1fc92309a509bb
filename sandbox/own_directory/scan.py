"""Scan a directory for files that programs outside the sandbox run.

The directory is hostile: the scan uses directory descriptors, follows no link, opens only regular
files, and has limits of entries, depth and time.
"""

from __future__ import annotations

import os
from pathlib import Path

from sandbox.directories.beneath import DIRECTORY
from sandbox.own_directory.git_directory import GitScan, looks_like_git
from sandbox.own_directory.inventory import Inventory, Item, is_below
from sandbox.own_directory.names import BLOCKED, GIT, PACKAGES, fold, why_listed
from sandbox.own_directory.rules import FileRules
from sandbox.own_directory.stamps import DEPTH, Allowance, ScanLimitReached, entry_stamp

ENTRIES = 300_000
SECONDS = 15.0


def take_inventory(root: Path, rules: FileRules) -> Inventory:
    """Scan all of `root` for files that programs outside the sandbox run.

    In the result, `incomplete` lists paths that a limit or a permission excluded. Raises OSError if
    `root` itself cannot be opened.
    """
    scan = _Scan(root, rules)
    descriptor = os.open(root, DIRECTORY)
    try:
        scan.directory(descriptor, "", 1)
    finally:
        os.close(descriptor)
    return scan.found


class _Scan:
    def __init__(self, root: Path, rules: FileRules) -> None:
        self._root = root
        self._rules = rules
        self._allowance = Allowance(ENTRIES, SECONDS)
        self.found = Inventory()
        self._git = GitScan(root, rules, self._allowance, self.found)

    def directory(self, descriptor: int, path: str, depth: int) -> None:
        try:
            if depth > DEPTH:
                raise ScanLimitReached(f"nested deeper than {DEPTH} directories")
            entries = self._allowance.names(descriptor)
        except (ScanLimitReached, OSError) as error:
            self._note(path, error)
            return
        names = {fold(entry.name) for entry in entries}
        if looks_like_git(names):
            self._git.scan(descriptor, path, is_embedded=True)
            if path:
                return
        for entry in entries:
            below = f"{path}/{entry.name}" if path else entry.name
            try:
                self._entry(descriptor, entry, below, depth)
            except FileNotFoundError:
                continue  # removed since it was listed
            except (ScanLimitReached, OSError) as error:
                self._note(below, error)

    def _entry(self, parent: int, entry: os.DirEntry[str], path: str, depth: int) -> None:
        name = fold(entry.name)
        is_directory = entry.is_dir(follow_symlinks=False)
        why = self._rules.why_protected(path)
        if name == GIT and is_directory:
            self._open(parent, entry.name, path, depth, is_git=True)
        elif why is not None:
            self._protected(parent, entry, path, why)
        elif is_directory and name in PACKAGES:
            self._stamped(parent, entry.name, path, Item("packages", PACKAGES[name], ""))
        elif is_directory and self._is_environment(parent, entry.name):
            self._stamped(parent, entry.name, path, Item("packages", PACKAGES["venv"], ""))
        elif opened := FileRules().why_protected(path):
            self._stamped(parent, entry.name, path, Item("listed", opened, ""))
        elif (not is_directory or BLOCKED in name) and (reason := why_listed(entry.name)):
            self._stamped(parent, entry.name, path, Item("listed", reason, ""))
        elif is_directory:
            self._open(parent, entry.name, path, depth)

    def _open(self, parent: int, name: str, path: str, depth: int, *, is_git: bool = False) -> None:
        descriptor = os.open(name, DIRECTORY, dir_fd=parent)
        try:
            if is_git:
                self._git.scan(descriptor, path)
            else:
                self.directory(descriptor, path, depth + 1)
        finally:
            os.close(descriptor)

    def _protected(self, parent: int, entry: os.DirEntry[str], path: str, why: str) -> None:
        self._stamped(parent, entry.name, path, Item("protected", why, ""))
        if entry.is_symlink():
            self._git.protect_target(self._root / path)
        elif not is_below(path, self.found.read_only):
            self.found.read_only.add(path)

    def _stamped(self, parent: int, name: str, path: str, item: Item) -> None:
        content = item.kind != "packages"
        stamp = entry_stamp(name, parent, self._allowance, content=content)
        self.found.items[path] = item._replace(stamp=stamp)

    def _is_environment(self, parent: int, name: str) -> bool:
        try:
            os.stat(f"{name}/pyvenv.cfg", dir_fd=parent, follow_symlinks=False)
        except OSError:
            return False
        return True

    def _note(self, path: str, error: ScanLimitReached | OSError) -> None:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        self.found.incomplete.append(f"{path or '.'}: {reason}")
