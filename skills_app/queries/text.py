"""Return the instructions of loaded skills as the model receives them."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import PinnedSkill
from skills_app.library.read import body_of
from skills_app.library.shelf import Instructions
from skills_app.models import SkillFile, SkillVersion, Trust


def skill_text(skills: Sequence[PinnedSkill], *, limit: int, heads_only: bool = False) -> str:
    """Return the texts of `skill_texts` as one text."""
    return "\n\n".join(skill_texts(skills, limit=limit, heads_only=heads_only))


def skill_texts(
    skills: Sequence[PinnedSkill], *, limit: int, heads_only: bool = False
) -> list[str]:
    """Return the instructions of each skill, together about `limit` bytes (see `Instructions`)."""
    versions = SkillVersion.objects.in_bulk([skill.version_id for skill in skills])
    files = SkillFile.objects.filter(version_id__in=versions).order_by("version_id", "path")
    paths: dict[int, list[str]] = {}
    for version_id, path in files.values_list("version_id", "path"):
        if path != SKILL_FILE:
            paths.setdefault(version_id, []).append(path)
    instructions = Instructions(limit, heads_only=heads_only)
    return [
        instructions.of(
            skill,
            body_of(versions[skill.version_id].content or ""),
            paths.get(skill.version_id, ()),
            skill.directory,
        )
        for skill in skills
    ]


def in_quarantine(skills: Sequence[PinnedSkill]) -> list[str]:
    """Return the names of `skills` that are in quarantine now, not at the start of their run."""
    versions = SkillVersion.objects.filter(
        pk__in=[skill.version_id for skill in skills], trust=Trust.QUARANTINED
    )
    bad = set(versions.order_by().values_list("pk", flat=True))
    return [skill.name for skill in skills if skill.version_id in bad]
