"""A skill outside of the database: its content, its path, and its text for a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from skills_app.library.package import SKILL_FILE, Head, Package
from skills_app.library.paths import shown_path
from skills_app.library.problems import VALUE_CHANGED, InvalidSkill, Problem
from skills_app.library.search.document import SkillDocument, analyse, package_document
from skills_app.library.search.query import read_query
from skills_app.library.search.ranking import score
from skills_app.library.sources.discover import read_each
from skills_app.library.sources.folder import package_in, read_folder
from skills_app.settings import SkillSettings


@dataclass(frozen=True)
class Skill:
    """One skill, as a program uses it.

    `content` is the body of the SKILL.md at `path`. `documents` are the other Markdown files as
    (path in the package, text), and `files` the paths of all remaining files.

    >>> skill = Skill("stock", "How to count the stock.", "Count each shelf twice.", tags=["stock"])
    >>> skill.matches_query("count the stock") > 0.2
    True
    """

    name: str
    description: str
    content: str = ""
    path: Path | None = None
    version: str = ""
    author: str = ""
    title: str = ""
    tools_required: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    priority: int = 0
    enabled: bool = True
    documents: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the fields. Lists become tuples. Raises `InvalidSkill` that names the field."""
        for name in ("name", "description", "content", "version", "author", "title"):
            _check(self, name, str, "a text")
        _check(self, "path", Path | None, "a Path or None")
        for name in ("tools_required", "tags", "triggers", "requires", "files", "documents"):
            _check(self, name, list | tuple, "a list")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _check(self, "priority", int, "a whole number")
        _check(self, "enabled", bool, "True or False")

    @property
    def head(self) -> Head:
        """Return the skill's fields as the head of a SKILL.md."""
        return Head(
            name=self.name,
            description=self.description,
            title=self.title,
            version=self.version,
            author=self.author,
            tags=tuple(self.tags),
            triggers=tuple(self.triggers),
            requires=tuple(self.requires),
            tools_required=tuple(self.tools_required),
            priority=self.priority,
            enabled=self.enabled,
        )

    @property
    def source_path(self) -> Path | None:
        return self.path

    def matches_query(self, query: str) -> float:
        """Return how well the skill matches `query`, from 0 to 1, independent of other skills."""
        return score(read_query(query), analyse(self.document))

    def get_full_context(self) -> str:
        """Return the skill as a text for a model.

        The text has the heading, the body and the other Markdown files with their paths. It has at
        most about `CONTEXT_BYTES`. Whole files are omitted, the body is cut at the end of a line,
        and the end of the text lists the missing parts.
        """
        left = SkillSettings.now().CONTEXT_BYTES
        body, cut = _cut(self.content.strip(), left)
        parts = [f"# Skill: {self.name}\n\n{body}"]
        left -= len(parts[0].encode())
        missing = [f"{cut:,} bytes of {SKILL_FILE}"] if cut else []
        for path, text in self.documents:
            part = f"## {shown_path(path)}\n\n{text.strip()}"
            size = len(part.encode())
            if size <= left:
                parts.append(part)
                left -= size
            else:
                missing.append(f"{shown_path(path)} ({size:,} bytes)")
        if missing:
            parts.append(f"[Left out, as there is no room: {', '.join(missing)}. Read the files.]")
        return "\n\n".join(parts)

    @cached_property
    def document(self) -> SkillDocument:
        """Return the parts of the skill that the search reads."""
        return SkillDocument(
            name=self.name,
            description=self.description,
            title=self.title,
            tags=self.tags,
            triggers=self.triggers,
            body=self.content,
            files=self.files,
            priority=self.priority,
        )

    @classmethod
    def of(cls, package: Package, path: Path | None = None) -> Skill:
        """Return `package` as a skill. `path` is the path of its SKILL.md."""
        head, searched = package.head, package_document(package)
        return cls(
            name=head.name,
            description=head.description,
            content=package.body,
            path=path,
            version=head.version,
            author=head.author,
            title=head.title,
            tools_required=head.tools_required,
            tags=head.tags,
            triggers=head.triggers,
            requires=head.requires,
            priority=head.priority,
            enabled=head.enabled,
            documents=tuple(_documents(package)),
            files=searched.files,
        )


@dataclass(frozen=True, slots=True)
class _Located:
    """A package and its path in the directory of skills."""

    package: Package
    place: str

    @property
    def head(self) -> Head:
        return self.package.head


def load_skill(path: str | Path) -> Skill:
    """Return the skill of a directory or a SKILL.md. Raises `InvalidSkill` with all problems.

    >>> os.makedirs("skills/stock", exist_ok=True)
    >>> text = "---\\nname: stock\\ndescription: How to count.\\n---\\nCount twice."
    >>> open("skills/stock/SKILL.md", "w").write(text) > 0
    True
    >>> load_skill("skills/stock").description
    'How to count.'
    """
    if not isinstance(path, str | Path) or not str(path):
        raise InvalidSkill(f"path must be that of a directory or a SKILL.md, got {path!r:.80}.")
    given = Path(path)
    folder = given.parent if given.name.lower() == SKILL_FILE.lower() else given
    return Skill.of(read_folder(folder), folder / SKILL_FILE)


parse_skill_file = load_skill


def load_skills(directory: Path) -> tuple[list[Skill], list[Problem]]:
    """Return (the skills in `directory`, the problems).

    The problems are those of packages that cannot be loaded, and warnings for values of loaded
    packages that are not used as they were written. The path of a problem starts with the package.
    """

    def read(found: int, name: str, path: str) -> tuple[_Located | None, list[Problem]]:
        package, problems = package_in(found, name)
        return (None if package is None else _Located(package, path)), problems

    located, problems = read_each(directory, read)
    told = [
        replace(problem, path=str(directory / place / problem.path))
        for place, found in problems.items()
        for problem in found
    ]
    told += [
        replace(problem, path=str(directory / one.place / problem.path))
        for one in located
        for problem in one.package.problems
        if problem.code in VALUE_CHANGED
    ]
    return [Skill.of(one.package, directory / one.place / SKILL_FILE) for one in located], told


def _check(skill: Skill, name: str, kind: Any, expected: str) -> None:
    value = getattr(skill, name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidSkill(f"{name} must be {expected}, got {value!r:.80}.")


def _documents(package: Package) -> Iterator[tuple[str, str]]:
    for file in package.files:
        if file.path != SKILL_FILE and file.path.lower().endswith(".md"):
            yield file.path, file.data.decode("utf-8", "replace")


def _cut(text: str, limit: int) -> tuple[str, int]:
    """Return (the whole lines of `text` that fit in `limit` bytes, the number of omitted bytes)."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text, 0
    kept = data[:limit].rpartition(b"\n")[0] or data[:limit]
    return kept.decode(errors="ignore"), len(data) - len(kept)
