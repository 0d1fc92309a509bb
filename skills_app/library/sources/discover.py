"""Find the packages in a directory of skills: the valid ones, and the problems of the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from skills_app.library.package import Head, Package
from skills_app.library.paths import is_junk, shown_path
from skills_app.library.problems import InvalidSkill, Problem, error, warning
from skills_app.library.read import is_skill_file
from skills_app.library.sources.folder import (
    DIRECTORY,
    directory_name,
    opened_directory,
    package_in,
)
from skills_app.settings import SkillSettings


def find_packages(directory: Path) -> list[Path]:
    """Return the directories that contain a SKILL.md, sorted by path.

    The search covers `directory` and its subdirectories, but not the inside of a package, and
    follows no links in `directory`. Raises `InvalidSkill` if there are too many entries or
    `directory` is unreadable.
    """
    with opened_directory(directory.resolve()) as root:
        if isinstance(root, Problem):
            raise InvalidSkill(str(root), [root])
        return [directory.joinpath(*parts) for parts, _ in _Search().packages(root)]


def read_directory(directory: Path) -> tuple[list[Package], dict[str, list[Problem]]]:
    """Return (all valid packages in `directory`, the problems of the others by path).

    See `read_each`.
    """
    return read_each(directory, lambda found, name, path: package_in(found, name))


class _Named(Protocol):
    @property
    def head(self) -> Head: ...


Found = TypeVar("Found", bound=_Named)


def read_each(
    directory: Path, read: Callable[[int, str, str], tuple[Found | None, Sequence[Problem]]]
) -> tuple[list[Found], dict[str, list[Problem]]]:
    """Return (the packages, the problems of omitted ones by their path in `directory`).

    `read` receives the open directory of a package, the directory's name and its path in
    `directory`, and returns (the package or None, its problems). If two packages have the same
    name, the first by path is used. Problems of `directory` itself have the path "", and then there
    are no packages.
    """
    packages: dict[str, Found] = {}
    places: dict[str, str] = {}
    problems: dict[str, list[Problem]] = {}
    search = _Search()
    with opened_directory(directory.resolve()) as root:
        if isinstance(root, Problem):
            return [], {"": [root]}
        try:
            for parts, found in search.packages(root):
                place = shown_path("/".join(parts)) or "."
                name = parts[-1] if parts else directory_name(directory)
                package, wrong = read(found, name, "/".join(parts))
                if package is None:
                    problems[place] = list(wrong)
                elif package.head.name in packages:
                    first = places[package.head.name]
                    message = f"{first} is already called {package.head.name}: rename one of them."
                    problems[place] = [error("name_taken", message)]
                else:
                    packages[package.head.name], places[package.head.name] = package, place
        except InvalidSkill as refusal:
            return [], {"": list(refusal.problems)}
    for place in search.links:
        problems[place] = [
            warning("link", "It is a link, which is not followed: put the package itself here.")
        ]
    for place, wrong_here in search.unreadable.items():
        problems[place] = [wrong_here]
    return list(packages.values()), problems


class _Search:
    """One search from open directories, so that nobody can insert a link in the meantime."""

    def __init__(self) -> None:
        self.limits = SkillSettings.now()
        self.entries_left = self.limits.DIRECTORY_ENTRIES
        self.found = 0
        self.links: list[str] = []
        self.unreadable: dict[str, Problem] = {}

    def packages(
        self, directory: int, parts: tuple[str, ...] = ()
    ) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield (path as parts, descriptor) of each package, sorted by path.

        A descriptor is open until the next package.
        """
        try:
            with os.scandir(directory) as scan:
                entries = list(islice(scan, self.entries_left + 1))
        except OSError as problem:
            self._tell_unreadable(parts, problem)
            return
        self.entries_left -= len(entries)
        if self.entries_left < 0:
            limit = self.limits.DIRECTORY_ENTRIES
            self._refuse(f"There are more than {limit:,} files here: name a smaller directory.")
        if any(is_skill_file(entry.name) for entry in entries):
            self.found += 1
            if self.found > self.limits.DIRECTORY_SKILLS:
                limit = self.limits.DIRECTORY_SKILLS
                self._refuse(f"There are more than {limit} skills here: name a smaller directory.")
            yield parts, directory
            return
        if len(parts) >= self.limits.DEPTH:
            return
        for entry in sorted(entries, key=lambda entry: entry.name):
            here = (*parts, entry.name)
            if is_junk(entry.name):
                continue
            if entry.is_symlink():
                # A link to a file is not a package. The link must be followed to know the target's
                # type.
                if "." not in entry.name and len(self.links) < self.limits.DIRECTORY_SKILLS:
                    self.links.append(shown_path("/".join(here)))
            elif entry.is_dir(follow_symlinks=False):
                yield from self._below(directory, entry.name, here)

    def _below(
        self, directory: int, name: str, here: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], int]]:
        try:
            below = os.open(name, DIRECTORY, dir_fd=directory)
        except OSError as problem:
            self._tell_unreadable(here, problem)
            return
        try:
            yield from self.packages(below, here)
        finally:
            os.close(below)

    def _tell_unreadable(self, here: tuple[str, ...], problem: OSError) -> None:
        message = f"It cannot be read: {problem.strerror}."
        self.unreadable[shown_path("/".join(here))] = error("unreadable", message)

    def _refuse(self, message: str) -> None:
        raise InvalidSkill(message, [error("too_many", message)])
