"""Read skills and the files of their versions for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from agents.selectors.visible import Person, agents_for
from skills_app.library.read import body_of
from skills_app.library.scopes import BUILT_IN, LIBRARY, directory_scope
from skills_app.models import Skill, SkillFile, SkillVersion
from skills_app.settings import SkillSettings


@dataclass(frozen=True, slots=True)
class PackageEntry:
    """A file of a version without its content. `sha256` is in hex."""

    path: str
    size_bytes: int
    executable: bool
    sha256: str


def skills_for(user: Person) -> QuerySet[Skill]:
    """Return the skills that `user` may read: shared ones, and own skills of the user's agents.

    Skills in directories that callers have named for their own threads are excluded.
    """
    if not user.is_authenticated:
        return Skill.objects.none()
    everybodys = [BUILT_IN, LIBRARY, *map(directory_scope, SkillSettings.now().DIRECTORIES)]
    return Skill.objects.filter(
        Q(scope__in=everybodys) | Q(agent__in=agents_for(user).values("pk")), is_deleted=False
    )


def versions_of(skill: Skill) -> QuerySet[SkillVersion]:
    """Return the versions of `skill` that have a package, latest first."""
    return (
        skill.versions.exclude(content=None)
        .select_related("created_by", "reviewed_by")
        .defer("content")
        .order_by("-number")
    )


def version_of(skill: Skill, number: int | None = None) -> SkillVersion | None:
    """Return the version `number`, or None if it does not exist or has no package.

    Without a number, return the current version, or else the latest.
    """
    versions = versions_of(skill)
    if number is not None:
        return versions.filter(number=number).first()
    if skill.current_id is not None:
        return versions.filter(pk=skill.current_id).first()
    return versions.first()


def waiting_trusts(skills: Iterable[Skill]) -> dict[int, str]:
    """Return the trust of the latest version by the skill's id.

    Skills with a current version are omitted.
    """
    waiting = [skill.pk for skill in skills if skill.current_id is None]
    latest = SkillVersion.objects.filter(skill__in=waiting, number=F("skill__version"))
    return dict(latest.order_by().values_list("skill_id", "trust"))


def package_entries(version_id: int) -> list[PackageEntry]:
    """Return the files of a version without their content, sorted by path."""
    rows = SkillFile.objects.filter(version_id=version_id).order_by("path")
    return [
        PackageEntry(*row)
        for row in rows.values_list("path", "blob__size_bytes", "executable", "blob_id")
    ]


def package_file(version_id: int, path: str) -> bytes | None:
    """Return the content of one file, None if the version has no file with exactly this path."""
    if "\0" in path:  # no path has it, and PostgreSQL does not accept it
        return None
    data = (
        SkillFile.objects.filter(version_id=version_id, path=path)
        .values_list("blob__data", flat=True)
        .first()
    )
    return None if data is None else bytes(data)


def instructions_of(version_ids: Iterable[int]) -> dict[int, str]:
    """Return by version the body of its SKILL.md, without surrounding blank lines."""
    rows = SkillVersion.objects.filter(pk__in=list(version_ids)).exclude(content=None)
    contents = rows.values_list("pk", "content")
    return {pk: body_of(content or "").strip("\n") for pk, content in contents}


def as_text(data: bytes) -> str | None:
    """Return `data` as text, None if it is not UTF-8 or contains NUL."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
