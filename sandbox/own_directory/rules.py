"""A user's rules for the protection: files to allow, and additional files to protect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape

from sandbox.errors import SandboxSetupError
from sandbox.own_directory.names import GIT, fold, why_protected


@dataclass(frozen=True, slots=True)
class FileRules:
    """Rules for files in the user's own directory.

    `allow_write` allows changes of files that are protected by default. `protect` protects more
    files, and has priority. Both are patterns for paths, with `*` for any characters of a name. A
    pattern without a slash matches a name at any depth; a pattern with a slash matches a path from
    the top, and so does `./name`. A pattern that matches a directory includes its contents.

    Raises:
        SandboxSetupError: A pattern cannot match, or would allow only a part of a directory that is
            protected as a whole.
    """

    allow_write: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in (*self.allow_write, *self.protect):
            _check(pattern)
        for pattern in self.allow_write:
            for name in _parts(pattern)[:-1]:
                if why_protected(name) is not None:
                    raise SandboxSetupError(
                        f"{pattern!r} cannot be allowed separately: {name} is protected as a "
                        f"whole. Allow {name!r}."
                    )

    def protects(self, path: str) -> bool:
        """Return whether the rules additionally protect `path`."""
        return _matches(self.protect, path)

    def with_protected(self, directories: Sequence[str]) -> FileRules:
        """Return rules that also protect these directories, given as paths from the top."""
        more = tuple(f"./{escape(directory)}" for directory in directories)
        return FileRules(self.allow_write, (*self.protect, *more))

    def opens(self, path: str) -> bool:
        """Return whether the rules allow changes of `path`."""
        return _matches(self.allow_write, path) and not self.protects(path)

    def why_protected(self, path: str) -> str | None:
        """Return why the name of `path` is protected, or None if it is not.

        `path` is relative to the top.
        """
        if self.protects(path):
            return "protected by your settings"
        name = path.rpartition("/")[2]
        why = "a git repository" if fold(name) == GIT else why_protected(name)
        return None if why is None or self.opens(path) else why


def _check(pattern: str) -> None:
    parts = _parts(pattern)
    if not parts or pattern.startswith(("/", "~")) or not {".", ".."}.isdisjoint(parts):
        raise SandboxSetupError(
            f"{pattern!r} is not a path in the directory. Give a name such as .github, or a path "
            "relative to the directory such as scripts/deploy.sh."
        )
    if any(ord(char) < 32 for char in pattern):
        raise SandboxSetupError(f"{pattern!r} contains a control character. Remove it.")


def _parts(pattern: str) -> list[str]:
    return [fold(part) for part in pattern.removeprefix("./").split("/") if part]


def _matches(patterns: Sequence[str], path: str) -> bool:
    if not patterns:
        return False
    parts = [fold(part) for part in path.split("/")]
    for pattern in patterns:
        wanted = _parts(pattern)
        if "/" not in pattern.rstrip("/"):
            if any(fnmatchcase(part, wanted[0]) for part in parts):
                return True
        elif len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted)):
            return True
    return False
