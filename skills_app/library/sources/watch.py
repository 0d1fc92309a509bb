"""Read a directory of skills repeatedly, but read only packages that have changed.

The times, sizes, modes and inodes of all entries show a change. Programs cannot set a change time
back, so an edit that keeps size and modification time is noticed too.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from skills_app.library.package import Head, Package
from skills_app.library.paths import is_junk
from skills_app.library.problems import Problem, error
from skills_app.library.sources.discover import read_each
from skills_app.library.sources.folder import DIRECTORY, package_in
from skills_app.settings import SkillSettings

SETTLED_NS = 2_000_000_000
"""The age in ns from which the state of a file may be remembered.

File systems count time in steps, so a younger file may change again within the same step.
"""
READS = 3
"""How often a package that changes while it is read is read again."""
HELD_BYTES = 64_000_000
"""The maximum number of bytes of packages that one reading keeps in memory."""


@dataclass(frozen=True, slots=True)
class FoundPackage:
    """A package of a directory of skills.

    `path` is relative to the directory, "" for the directory itself. `package` has the content if
    it was just read and there was room, else None.
    """

    head: Head
    content_hash: str
    path: str
    package: Package | None = field(default=None, compare=False)


Remembered = Mapping[bytes, tuple[FoundPackage | None, list[Problem]]]
"""Maps the signature of a package to (the package or None if invalid, its problems)."""


@dataclass(frozen=True, slots=True)
class DirectoryRead:
    """The contents of a directory of skills.

    `problems` are those of omitted packages, by path as in `discover.read_each`.
    """

    packages: list[FoundPackage]
    problems: dict[str, list[Problem]]
    remembered: Remembered


def watch_directory(directory: Path, remembered: Remembered) -> DirectoryRead:
    """Return the current contents of `directory`. `remembered` comes from its last reading."""
    reader = _Reader(remembered)
    packages, problems = read_each(directory, reader.package)
    return DirectoryRead(packages, problems, reader.seen)


class _Reader:
    def __init__(self, remembered: Remembered) -> None:
        self.remembered = remembered
        self.seen: dict[bytes, tuple[FoundPackage | None, list[Problem]]] = {}
        self.room = HELD_BYTES

    def package(
        self, directory: int, name: str, path: str
    ) -> tuple[FoundPackage | None, Sequence[Problem]]:
        for _ in range(READS):
            now = time.time_ns()
            signature, newest = package_signature(directory, name, path)
            if signature is not None and (known := self.remembered.get(signature)) is not None:
                self.seen[signature] = known
                return known
            package, problems = package_in(directory, name)
            if signature is None or signature == package_signature(directory, name, path)[0]:
                break
        else:
            return None, [error("changing", "It changed while it was read: the next run reads it.")]
        settled = signature is not None and newest < now - SETTLED_NS
        if package is None:
            if signature is not None and settled:
                self.seen[signature] = (None, problems)
            return None, problems
        found = FoundPackage(package.head, package.content_hash, path)
        if signature is not None and settled:
            self.seen[signature] = (found, problems)
        if package.size > self.room:
            return found, problems
        self.room -= package.size
        return replace(found, package=package), problems


def package_signature(directory: int, name: str, path: str) -> tuple[bytes | None, int]:
    """Return (a signature of all entries of the open `directory`, their newest time in ns).

    The signature is None if there are more entries than a package may have.
    """
    digest = hashlib.blake2b(f"{name}\0{path}\0".encode("utf-8", "surrogateescape"), digest_size=24)
    left = 2 * SkillSettings.now().FILES
    newest = 0

    def add(here: int, prefix: str) -> None:
        nonlocal left, newest
        top = os.fstat(here)
        digest.update(f"{prefix}\0{_status(top)}\n".encode("utf-8", "surrogateescape"))
        newest = max(newest, top.st_ctime_ns, top.st_mtime_ns)
        below = []
        try:
            entries = os.scandir(here)
        except OSError as problem:
            digest.update(f"\0{problem.errno}\n".encode())
            return
        with entries:
            lines = []
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                if is_junk(entry.name):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as problem:
                    lines.append(f"{entry.name}\0{problem.errno}\n")
                    continue
                lines.append(f"{entry.name}\0{_status(status)}\n")
                newest = max(newest, status.st_ctime_ns, status.st_mtime_ns)
                if stat.S_ISDIR(status.st_mode):
                    below.append(entry.name)
        digest.update("".join(sorted(lines)).encode("utf-8", "surrogateescape"))
        for child in sorted(below):
            try:
                descriptor = os.open(child, DIRECTORY, dir_fd=here)
            except OSError as problem:
                digest.update(f"{child}\0{problem.errno}\n".encode("utf-8", "surrogateescape"))
                continue
            try:
                if prefix.count("/") <= SkillSettings.now().DEPTH:
                    add(descriptor, f"{prefix}{child}/")
            finally:
                os.close(descriptor)

    add(directory, "")
    return (None if left < 0 else digest.digest()), newest


def _status(status: os.stat_result) -> str:
    return (
        f"{status.st_dev} {status.st_ino} {status.st_mode} {status.st_size} "
        f"{status.st_mtime_ns} {status.st_ctime_ns}"
    )
