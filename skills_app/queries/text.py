"""The instructions of skills as the model gets them with a loaded skill."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import PinnedSkill
from skills_app.library.read import body_of
from skills_app.models import SkillFile, SkillVersion, Trust

_FILES_NAMED = 60


def skill_text(skills: Sequence[PinnedSkill], *, limit: int, heads_only: bool = False) -> str:
    """Return the `skill_texts` as one text."""
    return "\n\n".join(skill_texts(skills, limit=limit, heads_only=heads_only))


def skill_texts(
    skills: Sequence[PinnedSkill], *, limit: int, heads_only: bool = False
) -> list[str]:
    """Return heading, list of files and body of each skill, all together about `limit` bytes.

    `heads_only` omits the bodies. A cut text names the place of the whole. Without more room, a
    skill has only one line.
    """
    versions = SkillVersion.objects.in_bulk([skill.version_id for skill in skills])
    files = SkillFile.objects.filter(version_id__in=versions).order_by("version_id", "path")
    paths: dict[int, list[str]] = {}
    for version_id, path in files.values_list("version_id", "path"):
        paths.setdefault(version_id, []).append(path)
    room, parts = limit, []
    for skill in skills:
        content = versions[skill.version_id].content or ""
        others = [path for path in paths.get(skill.version_id, ()) if path != SKILL_FILE]
        part = _heading(skill, others) if room > 0 else _title(skill)
        room -= len(part.encode())
        if not heads_only:
            body = body_of(content).strip().encode()
            displayed = body[: max(room, 0)].decode(errors="ignore")
            cut = f"\n\n[cut; the whole is in {skill.directory}/{SKILL_FILE}]"
            part = f"{part}\n\n{displayed}{cut if len(displayed.encode()) < len(body) else ''}"
            room -= len(body)
        parts.append(part)
    return parts


def in_quarantine(skills: Sequence[PinnedSkill]) -> list[str]:
    """Return the names of skills in quarantine, also if that is newer than their run."""
    versions = SkillVersion.objects.filter(
        pk__in=[skill.version_id for skill in skills], trust=Trust.QUARANTINED
    )
    bad = set(versions.order_by().values_list("pk", flat=True))
    return [skill.name for skill in skills if skill.version_id in bad]


def _heading(skill: PinnedSkill, files: Sequence[str]) -> str:
    lines = [_title(skill)]
    if files:
        more = f" and {len(files) - _FILES_NAMED} more" if len(files) > _FILES_NAMED else ""
        lines.append(f"Files in {skill.directory}/: {', '.join(files[:_FILES_NAMED])}{more}")
    return "\n".join(lines)


def _title(skill: PinnedSkill) -> str:
    version = f" {' '.join(skill.head.version.split())[:40]}" if skill.head.version else ""
    trust = ", which nobody has reviewed" if skill.trust == "imported" else ""
    return f"# Skill: {skill.name}{version} ({skill.trust}{trust})"
