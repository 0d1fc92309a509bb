"""The instructions of skills as the model gets them when it loads one."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.frontmatter import read_skill
from skills_app.models import SkillFile, SkillVersion
from skills_app.package import SKILL_FILE
from skills_app.pinned import PinnedSkill

_FILES_NAMED = 60


def skill_text(skills: Sequence[PinnedSkill], *, limit: int, heads_only: bool = False) -> str:
    """Heading, list of files and body of each skill, the bodies cut to `limit` bytes together.

    `heads_only` leaves the bodies out. What is cut says where the whole is.
    """
    versions = SkillVersion.objects.in_bulk([skill.version_id for skill in skills])
    files = SkillFile.objects.filter(version_id__in=versions).order_by("version_id", "path")
    paths: dict[int, list[str]] = {}
    for version_id, path in files.values_list("version_id", "path"):
        paths.setdefault(version_id, []).append(path)
    room, parts = limit, []
    for skill in skills:
        head = _heading(skill, [path for path in paths[skill.version_id] if path != SKILL_FILE])
        if heads_only:
            parts.append(head)
            continue
        _, body = read_skill(versions[skill.version_id].content or "")
        data = body.encode()
        if len(data) > room:
            shown = data[:room].decode(errors="ignore")
            body = f"{shown}\n\n[cut; the whole is in {skill.directory}/{SKILL_FILE}]"
        room = max(0, room - len(data))
        parts.append(f"{head}\n\n{body.strip()}")
    return "\n\n".join(parts)


def _heading(skill: PinnedSkill, files: Sequence[str]) -> str:
    version = f" {skill.head.version}" if skill.head.version else ""
    trust = ", which nobody has reviewed" if skill.trust == "imported" else ""
    lines = [f"# Skill: {skill.name}{version} ({skill.trust}{trust})"]
    if files:
        more = f" and {len(files) - _FILES_NAMED} more" if len(files) > _FILES_NAMED else ""
        lines.append(f"Files in {skill.directory}/: {', '.join(files[:_FILES_NAMED])}{more}")
    return "\n".join(lines)
