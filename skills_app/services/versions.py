"""The one way in which an agent's own skill changes: a new version on top of a known one."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from django.db import IntegrityError, transaction

from skills_app.errors import InvalidSkill, SkillChanged
from skills_app.frontmatter import read_skill
from skills_app.models import Skill, SkillVersion, Trust
from skills_app.models.skill import MAX_NAME_CHARACTERS

MAX_DESCRIPTION_CHARACTERS = 1024
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def skill_state(agent_id: str, name: str) -> tuple[str | None, int]:
    """(content, version) of an agent's own skill; content None where there is none (any more)."""
    latest = (
        SkillVersion.objects.filter(skill__agent_id=agent_id, skill__name=name)
        .order_by("-number")
        .values_list("content", "number")
        .first()
    )
    return latest if latest else (None, 0)


def check_skill(name: str, content: str) -> str:
    """Refuse what is not the SKILL.md of `name`; return its description. Raises `InvalidSkill`."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARACTERS:
        raise InvalidSkill(
            f"{name!r} is no name for a skill: lower-case letters, digits and single hyphens, "
            f"{MAX_NAME_CHARACTERS} characters at most."
        )
    fields, body = read_skill(content)
    if fields.get("name") != name:
        raise InvalidSkill(f"The head must have `name: {name}`, as its file is called.")
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        raise InvalidSkill("The head must have a `description:` of what it does and when.")
    if len(description) > MAX_DESCRIPTION_CHARACTERS:
        raise InvalidSkill(f"The description is over {MAX_DESCRIPTION_CHARACTERS} characters.")
    if not body.strip():
        raise InvalidSkill("The skill has no instructions after its head.")
    return description.strip()


@transaction.atomic
def store_version(
    agent_id: str,
    name: str,
    content: str | None,
    *,
    base_version: int,
    trust: Trust,
    source: str,
    by_id: int | None = None,
    reason: str = "",
) -> int:
    """Make `content` the skill's next version, None to delete it, and return the number.

    Raises `InvalidSkill`, and `SkillChanged` when the skill is not at `base_version`.
    """
    description = check_skill(name, content) if content is not None else ""
    before, number = skill_state(agent_id, name)
    if number != base_version:
        raise SkillChanged(f"The skill {name} has changed since: look at it again.")
    if content is None and before is None:
        raise InvalidSkill(f"There is no skill {name} to delete.")
    try:
        with transaction.atomic():
            fields: dict[str, Any] = {"version": number + 1, "is_deleted": content is None}
            if content is not None:
                fields["description"] = description
            skill, _ = Skill.objects.update_or_create(agent_id=agent_id, name=name, defaults=fields)
            SkillVersion.objects.create(
                skill=skill,
                number=number + 1,
                content=content,
                content_hash=hashlib.sha256(content.encode()).hexdigest() if content else "",
                trust=trust,
                source=source,
                reason=reason,
                created_by_id=by_id,
            )
    except IntegrityError:
        raise SkillChanged(f"The skill {name} has changed at this moment: look again.") from None
    return number + 1
