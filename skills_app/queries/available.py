"""The current skills of an agent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F

from skills_app.library.scopes import BUILT_IN, LIBRARY, agent_scope, directory_scope
from skills_app.library.skeleton import skeleton
from skills_app.models import AgentSkill, Skill, SkillVersion, Trust
from skills_app.settings import SkillSettings


@dataclass(frozen=True, slots=True)
class Available:
    """`versions` in the order of their names; `collisions` are (name, scope) that lost a name."""

    versions: list[SkillVersion]
    collisions: list[tuple[str, str]]


def scopes_of(agent_id: str, *, built_in: bool, directories: Sequence[str]) -> list[str]:
    """Return an agent's scopes in the order in which they keep a name."""
    named = [*SkillSettings.now().DIRECTORIES, *directories]
    return [
        *([BUILT_IN] if built_in else []),
        LIBRARY,
        *(directory_scope(path) for path in dict.fromkeys(named)),
        agent_scope(agent_id),
    ]


def available_skills(
    agent_id: str,
    *,
    built_in: bool = True,
    directories: Sequence[str] = (),
    there: Mapping[str, Collection[str]] | None = None,
) -> Available:
    """Return the current versions that `agent_id` may use, without disabled or quarantined ones.

    `directories` are those that the caller of a thread named, in addition to those of the settings.
    `there` are the names of the skills that a reader of directories found in a scope: other rows of
    the scope are ignored.
    """
    scopes = scopes_of(agent_id, built_in=built_in, directories=directories)
    rank = {scope: place for place, scope in enumerate(scopes)}
    choices = dict(AgentSkill.objects.filter(agent_id=agent_id).values_list("skill_id", "enabled"))
    skills = (
        Skill.objects.filter(scope__in=scopes, is_deleted=False)
        .select_related("current")
        # Heads are large and never change: `skills_app.actions.sets` provides and caches them.
        .only("name", "scope", "current__skill", "current__content_hash", "current__trust")
        .annotate(enabled_by_head=F("current__head__enabled"))
    )
    found: dict[str, SkillVersion] = {}
    names = _Names()
    collisions: list[tuple[str, str]] = []
    for skill in sorted(skills, key=lambda skill: (rank[skill.scope], skill.name)):
        version = skill.current
        by_itself = skill.scope != LIBRARY and skill.enabled_by_head is not False
        if not choices.get(skill.pk, by_itself):
            continue
        if there is not None and skill.name not in there.get(skill.scope, (skill.name,)):
            continue
        if names.is_taken(skill.name):
            collisions.append((skill.name, skill.scope))
            continue
        # A withheld skill keeps its name: no other skill takes its place.
        names.take(skill.name)
        if version is not None and version.trust != Trust.QUARANTINED:
            version.skill = skill
            found[skill.name] = version
    return Available([found[name] for name in sorted(found)], collisions)


class _Names:
    """Taken names, including lookalikes in letters of another script."""

    def __init__(self) -> None:
        self._by_skeleton: dict[str, list[str]] = {}

    def take(self, name: str) -> None:
        self._by_skeleton.setdefault(skeleton(name), []).append(name)

    def is_taken(self, name: str) -> bool:
        return any(
            other == name or not (other.isascii() and name.isascii())
            for other in self._by_skeleton.get(skeleton(name), ())
        )
