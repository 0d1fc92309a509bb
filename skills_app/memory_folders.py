"""Show an agent's own skills as the folder skills/ of its memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import ClassVar

from django.db.models import F

from agents.services.errors import Conflict
from memory.public import (
    Change,
    Changed,
    FileState,
    MemoryEntry,
    MemoryFolder,
    MemoryRefused,
    NameRefused,
    Operation,
    RevisionEntry,
    content_type_of,
    size_of,
)
from skills_app.actions.library import check_name, shared_sources
from skills_app.actions.versions import check_skill, skill_state, store_version
from skills_app.library.problems import SkillChanged, SkillRefused
from skills_app.models import Skill, SkillVersion, Trust


class SkillFolder(MemoryFolder):
    """The folder skills/. Its revisions are skill versions."""

    prefix: ClassVar[str] = "skills/"

    def state(self, agent_id: str, path: str) -> FileState:
        return FileState(*skill_state(agent_id, _name(path)))

    def updated_at(self, agent_id: str, path: str) -> datetime | None:
        skills = Skill.objects.filter(agent_id=agent_id, name=_name(path), is_deleted=False)
        return skills.values_list("updated_at", flat=True).first()

    def entries(self, agent_id: str) -> Sequence[MemoryEntry]:
        versions = SkillVersion.objects.filter(
            skill__agent_id=agent_id, skill__is_deleted=False, number=F("skill__version")
        ).exclude(trust=Trust.QUARANTINED)
        entries = []
        for version in versions.select_related("skill").order_by("skill__name"):
            skill, path = version.skill, f"{self.prefix}{version.skill.name}.md"
            size = size_of(version.content or "")
            entries.append(
                MemoryEntry(path, content_type_of(path), size, skill.created_at, skill.updated_at)
            )
        return entries

    def revisions(self, agent_id: str, path: str) -> Sequence[RevisionEntry]:
        versions = SkillVersion.objects.filter(
            skill__agent_id=agent_id, skill__name=_name(path)
        ).select_related("created_by")
        return [
            RevisionEntry(
                number=version.number,
                operation=_operation(version),
                size_bytes=size_of(version.content or ""),
                reason=version.reason,
                source=version.source,
                by=version.created_by.get_username() if version.created_by else "",
                created_at=version.created_at,
                is_deleted=version.content is None,
                approval_id=None,
            )
            for version in versions.order_by("-number")
        ]

    def content(self, agent_id: str, path: str, number: int) -> tuple[str | None] | None:
        versions = SkillVersion.objects.filter(
            skill__agent_id=agent_id, skill__name=_name(path), number=number
        )
        return versions.values_list("content").first()

    def check(self, agent_id: str, path: str, content: str) -> None:
        with _as_memory_refused():
            check_skill(_name(path), content)
            check_name(_name(path), shared_sources(), agent_id=agent_id, new=False)

    def store(self, agent_id: str, change: Change) -> int:
        name = _name(change.path)
        with _as_memory_refused():
            if change.content is not None:
                check_name(name, shared_sources(), agent_id=agent_id, new=False)
            return store_version(
                agent_id,
                name,
                change.content,
                base_version=change.base_revision,
                # An approval of the edit is not a review of exactly these bytes.
                trust=Trust.IMPORTED,
                source=change.source,
                by_id=change.by_id,
                reason=change.reason,
            )


def _name(path: str) -> str:
    """Return the name of the skill with the path `skills/NAME.md`."""
    return path.removeprefix(SkillFolder.prefix).removesuffix(".md")


def _operation(version: SkillVersion) -> str:
    """Return the memory operation that created the version.

    A restored version counts as a write.
    """
    if version.content is None:
        return Operation.DELETE.value
    return Operation.IMPORT.value if version.source == "import" else Operation.WRITE.value


@contextmanager
def _as_memory_refused() -> Iterator[None]:
    try:
        yield
    except SkillChanged as problem:
        raise Changed(str(problem)) from None
    except SkillRefused as problem:
        raise MemoryRefused(str(problem)) from None
    except Conflict as problem:
        raise NameRefused(problem.message, problem.code) from None


FOLDERS = [SkillFolder()]
