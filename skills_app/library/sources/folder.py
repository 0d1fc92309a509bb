"""Read a package from a directory of this host. An attacker may control its contents.

The reader follows no links, opens no files outside the directory, and reads only plain files, up to
their size limit. A concurrent change is reported as a problem, not raised as an exception.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from skills_app.library.package import Package, PackageFile, errors_of
from skills_app.library.paths import is_junk, junk_problems, shown_path
from skills_app.library.problems import Problem, error
from skills_app.library.read import (
    file_limit,
    file_too_large,
    is_skill_file,
    package_too_large,
    read_package,
    refused,
    too_many_files,
)
from skills_app.settings import SkillSettings

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW
"""With O_NONBLOCK, a FIFO in the place of a file does not block Vel."""
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


def read_folder(path: Path) -> Package:
    """Return the package in the directory `path`. Raises `InvalidSkill` with all problems."""
    package, problems = folder_package(path)
    if package is None:
        raise refused(problems)
    return package


def folder_package(path: Path) -> tuple[Package | None, list[Problem]]:
    """Return (the package in the directory `path`, all problems).

    The package is None if one of the problems is an error.
    """
    with opened_directory(path) as directory:
        if isinstance(directory, Problem):
            return None, [directory]
        return package_in(directory, directory_name(path))


def package_in(directory: int, name: str) -> tuple[Package | None, list[Problem]]:
    """Return the result of `folder_package` for the open directory `directory`, called `name`."""
    reader = _Reader()
    try:
        reader.read(directory, "", 0)
    except OSError as problem:
        return None, [error("unreadable", f"The directory cannot be read: {problem.strerror}.")]
    found = [*junk_problems(reader.left_out), *reader.problems]
    if reader.unreadable_skill:
        return None, found
    package, problems = read_package(reader.files, name)
    problems = [*found, *(problem for problem in problems if problem not in found)]
    if package is None or errors_of(problems):
        return None, problems
    return Package(
        package.head, package.text, package.body, package.files, tuple(problems)
    ), problems


def directory_name(path: Path) -> str:
    """Return the name of the directory `path`. `.` and `..` are resolved."""
    return Path(os.path.abspath(path)).name


@contextmanager
def opened_directory(path: Path) -> Iterator[int | Problem]:
    """Yield the descriptor of the directory `path`, or the problem that prevents opening it."""
    try:
        descriptor = os.open(path, DIRECTORY)
    except (OSError, ValueError) as problem:
        yield _not_opened(path, problem)
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _not_opened(path: Path, problem: OSError | ValueError) -> Problem:
    shown = shown_path(str(path))
    if isinstance(problem, FileNotFoundError):
        return error("missing", f"Path does not exist: {shown}")
    if path.is_symlink():
        return error("link", f"{shown} is a link: name the directory itself.")
    if isinstance(problem, NotADirectoryError):
        return error("missing", f"Not a directory: {shown}")
    reason = problem.strerror if isinstance(problem, OSError) else problem
    return error("unreadable", f"{shown} cannot be read: {reason}.")


class _Reader:
    """Collects the files of a package until their number or size exceeds a limit."""

    def __init__(self) -> None:
        self.files: list[PackageFile] = []
        self.problems: list[Problem] = []
        self.left_out: list[str] = []
        self.unreadable_skill = False
        self.limits = SkillSettings.now()
        self.entries_left = 2 * self.limits.FILES
        """Directories count too: many empty ones would take time without reaching a limit."""
        self.bytes_left = self.limits.PACKAGE_BYTES
        self.is_full = False

    def read(self, directory: int, prefix: str, depth: int) -> None:
        """Read the contents of the open `directory`. `prefix` is its path in the package."""
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, self.entries_left + 1)]
        self.entries_left -= len(names)
        if self.entries_left < 0:
            self._stop(too_many_files())
        for name in sorted(names):
            if self.is_full:
                return
            path = prefix + name
            if is_junk(name):
                self.left_out.append(path)
                continue
            try:
                self._take(directory, name, path, depth)
            except OSError as problem:
                self._refuse("unreadable", f"It cannot be read: {problem.strerror}.", path)

    def _take(self, directory: int, name: str, path: str, depth: int) -> None:
        kind = stat.S_IFMT(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
        if kind == stat.S_IFREG:
            self._take_file(directory, name, path)
        elif kind != stat.S_IFDIR:
            called = _KINDS.get(kind, "a special file")
            self._refuse("special", f"It is {called}: put a plain file there instead.", path)
        elif depth >= self.limits.DEPTH:
            message = f"It is deeper than {self.limits.DEPTH} directories: move it up."
            self._refuse("path", message, path)
        else:
            below = os.open(name, DIRECTORY, dir_fd=directory)
            try:
                self.read(below, f"{path}/", depth + 1)
            finally:
                os.close(below)

    def _take_file(self, directory: int, name: str, path: str) -> None:
        if len(self.files) >= self.limits.FILES:
            self._stop(too_many_files())
            return
        limit = file_limit(path)
        with os.fdopen(os.open(name, _FILE, dir_fd=directory), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                self._refuse("special", "It is not a plain file: put one there instead.", path)
                return
            data = b"" if status.st_size > limit else stream.read(limit + 1)
        if status.st_size > limit or len(data) > limit:
            self._told(file_too_large(shown_path(path)), path)
            return
        self.bytes_left -= len(data)
        if self.bytes_left < 0:
            self._stop(package_too_large())
            return
        self.files.append(PackageFile(path, data, bool(status.st_mode & 0o100)))

    def _stop(self, problem: Problem) -> None:
        self.is_full = True
        self.problems.append(problem)
        self.unreadable_skill = not any(is_skill_file(file.path) for file in self.files)

    def _refuse(self, code: str, message: str, path: str) -> None:
        self._told(error(code, message, shown_path(path)), path)

    def _told(self, problem: Problem, path: str) -> None:
        self.problems.append(problem)
        # Remember an unreadable SKILL.md, or it would also be reported as missing.
        self.unreadable_skill |= is_skill_file(path)
