"""A skill package in memory: its files and the values of its SKILL.md."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from skills_app.library.problems import Problem, Severity

SKILL_FILE = "SKILL.md"


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file of a package.

    `path` is relative to the package, with `/`, and has been checked. `executable` is the mode in
    the source.
    """

    path: str
    data: bytes
    executable: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a SKILL.md, as Vel reads them.

    `name` is normalised. `allowed_tools` is None without the field, which differs from an empty
    list. `extra` has the unknown top-level fields as text, so that an export keeps them.
    """

    name: str
    description: str
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] | None = None
    title: str = ""
    version: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    tools_required: tuple[str, ...] = ()
    priority: int = 0
    enabled: bool = True
    extra: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON for `SkillVersion.head`."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Head:
        """Return the head that `as_json` stored. Lists become tuples again."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Package:
    """A valid package: it has no problem of severity `error` and may be stored.

    `text` is the whole SKILL.md, `body` the part after the head. `files` has all files, including
    SKILL.md, sorted by path. `problems` has the warnings.
    """

    head: Head
    text: str
    body: str
    files: tuple[PackageFile, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def content_hash(self) -> str:
        return hash_files((file.path, file.executable, file.sha256) for file in self.files)

    @property
    def size(self) -> int:
        """Return the total size of all files in bytes."""
        return sum(len(file.data) for file in self.files)


def hash_files(files: Iterable[tuple[str, bool, str]]) -> str:
    """Return the content hash of a package: SHA-256 in hex of all its files.

    Each file is (path, executable, SHA-256 of its bytes). A change of any byte, name or mode
    changes the hash. Paths must not contain newlines.
    """
    lines = sorted(f"{path}\n{int(executable)} {digest}\n" for path, executable, digest in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def errors_of(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity is Severity.ERROR]
