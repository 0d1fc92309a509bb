"""Which skills an agent has now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from skills_app.conf import skill_settings
from skills_app.models import AgentSkill, Skill, SkillVersion, Trust
from skills_app.scopes import BUILT_IN, LIBRARY, agent_scope, directory_scope


@dataclass(frozen=True, slots=True)
class Available:
    """`versions` in the order of their names; `collisions` are (name, scope) that lost a name."""

    versions: list[SkillVersion]
    collisions: list[tuple[str, str]]


def scopes_of(agent_id: str, *, built_in: bool, directories: Sequence[str]) -> list[str]:
    """An agent's scopes in the order in which they keep a name."""
    named = [*skill_settings().DIRECTORIES, *directories]
    return [
        *([BUILT_IN] if built_in else []),
        LIBRARY,
        *(directory_scope(path) for path in dict.fromkeys(named)),
        agent_scope(agent_id),
    ]


def available_skills(
    agent_id: str, *, built_in: bool = True, directories: Sequence[str] = ()
) -> Available:
    """The current versions that `agent_id` may use; nothing that is off or quarantined.

    `directories` are those that the caller of a thread named, beside those of the settings.
    """
    scopes = scopes_of(agent_id, built_in=built_in, directories=directories)
    rank = {scope: place for place, scope in enumerate(scopes)}
    choices = dict(AgentSkill.objects.filter(agent_id=agent_id).values_list("skill_id", "enabled"))
    skills = (
        Skill.objects.filter(scope__in=scopes, is_deleted=False)
        .exclude(Q(current=None) | Q(current__trust=Trust.QUARANTINED))
        .select_related("current")
        .defer("current__content", "current__findings")
    )
    found: dict[str, SkillVersion] = {}
    collisions: list[tuple[str, str]] = []
    for skill in sorted(skills, key=lambda skill: (rank[skill.scope], skill.name)):
        version = skill.current
        assert version is not None
        by_itself = skill.scope != LIBRARY and version.fields.enabled
        if not choices.get(skill.pk, by_itself):
            continue
        if skill.name in found:
            collisions.append((skill.name, skill.scope))
            continue
        version.skill = skill
        found[skill.name] = version
    return Available([found[name] for name in sorted(found)], collisions)
