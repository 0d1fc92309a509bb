"""The guard of one user's own directory, for its commands, its file tools and the report.

For commands, the guard is a list of mounts that protect files from changes. A mount point cannot be
renamed or removed, but a directory above it can. So each directory between the top and a protected
file is bound to itself, which makes it a mount point, too.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox.account import Account
from sandbox.errors import SandboxSetupError
from sandbox.own_directory.blocking import NewFileWatch
from sandbox.own_directory.git_directory import NEVER_NEW
from sandbox.own_directory.inventory import Change, Inventory, changes_since, is_below
from sandbox.own_directory.names import PROTECTED
from sandbox.own_directory.rules import FileRules
from sandbox.own_directory.scan import take_inventory
from sandbox.policy import SandboxPolicy


class DirectoryGuard:
    """Protects files in `root` while an agent works there. Thread-safe.

    Commands see `root` at `target`. The first use scans the whole directory. Share one guard
    between the commands and the file tools of a run, so that this happens only once. `keep` is
    called with the result of this scan, before anything can change the directory.
    """

    def __init__(
        self,
        root: Path,
        target: str,
        rules: FileRules | None = None,
        keep: Callable[[Inventory], None] | None = None,
    ) -> None:
        self.root = root
        self._target = target
        self.rules = rules or FileRules()
        self._lock = threading.Lock()
        self._keep = keep
        self._first: Inventory | None = None
        self._found: Inventory | None = None

    @classmethod
    def of(cls, policy: SandboxPolicy) -> DirectoryGuard | None:
        """Return the guard of the user's own directory in `policy`, or None if it has none."""
        for mount in policy.mounts:
            if mount.foreign and mount.writable:
                return cls(mount.source, mount.target, mount.rules)
        return None

    def found(self) -> Inventory:
        """Return the result of the last scan. The first call scans the directory.

        Raises:
            SandboxSetupError: The directory cannot be read.
        """
        with self._lock:
            if self._found is None:
                first = self._scan()
                if self._keep is not None:
                    self._keep(first)
                self._found = self._first = first
            return self._found

    def changes(self) -> list[Change]:
        """Return files that changed since the first use and that programs outside the sandbox run.

        Raises `SandboxSetupError`.
        """
        self.found()
        assert self._first is not None
        return changes_since(self._first, self._scan())

    def prepare(self, account: Account) -> tuple[list[str], NewFileWatch]:
        """Return mounts for one command, as bubblewrap's arguments, and a watch for its duration.

        Raises `SandboxSetupError` for a directory that cannot be guarded.
        """
        found = self.found()
        watch = self.watch()
        try:
            if not all(is_below(path, found.read_only) for path in watch.known):
                raise StaleInventory("the user has added a file")
            return protecting_mounts(self.root, self._target, found, account), watch
        except StaleInventory:
            pass
        with self._lock:
            self._found = found = self._scan()
        watch = self.watch()
        try:
            return protecting_mounts(self.root, self._target, found, account), watch
        except StaleInventory as error:
            raise SandboxSetupError(
                f"{self.root} changes too fast to be protected (at {error}). Try again."
            ) from error

    def watch(self) -> NewFileWatch:
        """Return the watch that renames new files with protected names.

        Call it before the command may run. Raises `SandboxSetupError`.
        """
        return NewFileWatch(self.root, self.rules, self.found().repositories)

    def denied_paths(self) -> list[Path]:
        """Return protected paths, including new ones, for a sandbox that denies writes by path.

        Raises `SandboxSetupError`.
        """
        found = self.found()
        root = self.root.resolve()
        new = [name for name in PROTECTED if self.rules.why_protected(name) is not None]
        new += [
            f"{repository}/{name}".lstrip("/")
            for repository in found.repositories
            for name in NEVER_NEW
            if not self.rules.opens(f"{repository}/{name}")
        ]
        return [root / path for path in sorted({*found.read_only, *new})]

    def refusal(self, path: str) -> str | None:
        """Return why file tools must not write `path`; None if they may write it.

        `path` is relative to the top and without links. Raises `SandboxSetupError`.
        """
        found = self.found()
        parts = path.split("/")
        if self.rules.opens(path):
            return None
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            why = self.rules.why_protected(above)
            if why is not None:
                return _refusal(above, why)
        if is_below(path, found.read_only):
            return _refusal(path, "a file that git or another program runs")
        return None

    def _scan(self) -> Inventory:
        try:
            return take_inventory(self.root, self.rules)
        except OSError as error:
            raise SandboxSetupError(
                f"The directory {self.root} cannot be read: {error.strerror}."
            ) from error


def _refusal(path: str, why: str) -> str:
    return (
        f"protected: {path} is {why}, and programs outside the sandbox use it. Ask the user to "
        "make this change, or to allow it with --allow-write."
    )


MOST = 256
"""The maximum number of mounts of one command. Each mount costs bubblewrap more than the last."""


class StaleInventory(Exception):
    """Raised if the directory has changed since it was scanned."""


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
    """Raise `StaleInventory` if one of the paths is a link or does not exist.

    bubblewrap would follow the link while it still sees the host.
    """
    for path in paths:
        try:
            mode = os.stat(root / path, follow_symlinks=False).st_mode
        except OSError as error:
            raise StaleInventory(path) from error
        if stat.S_ISLNK(mode):
            raise StaleInventory(path)


def _may_enter(path: Path, account: Account) -> bool:
    """Return whether bubblewrap, as `account`, can reach the contents of the directory."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise StaleInventory(str(path)) from error
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)
