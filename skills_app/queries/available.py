"""Find the current skills of an agent."""

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
    """The current skills of an agent.

    `versions` are sorted by name. `collisions` are (name, its scope, the scope that keeps the
    name).
    """

    versions: list[SkillVersion]
    collisions: list[tuple[str, str, str]]


def scopes_of(agent_id: str, *, built_in: bool, directories: Sequence[str]) -> list[str]:
    """Return the scopes of an agent (see `library.scopes`), the first one first.

    Of several skills with one name, that of the first scope keeps it. See `available_skills` for
    the exception.
    """
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
    """Return the current versions that an agent may use.

    Disabled and quarantined skills are omitted. `directories` are those that the caller of a thread
    named, in addition to those of the settings. Their skills replace built-in ones with the same
    names. `there` has the names that the worker found in the directory of a scope: other rows of
    that scope are ignored.
    """
    scopes = scopes_of(agent_id, built_in=built_in, directories=directories)
    rank = {scope: place for place, scope in enumerate(scopes)}
    choices = dict(AgentSkill.objects.filter(agent_id=agent_id).values_list("skill_id", "enabled"))
    skills = (
        Skill.objects.filter(scope__in=scopes, is_deleted=False)
        .select_related("current")
        # Do not load heads: they are large and never change, and `skills_app.actions.sets` caches
        # them.
        .only("name", "scope", "current__skill", "current__content_hash", "current__trust")
        .annotate(enabled_by_head=F("current__head__enabled"))
    )
    found: dict[str, SkillVersion] = {}
    names = _Names()
    collisions: list[tuple[str, str, str]] = []
    replaceable = {skill.name for skill in skills if skill.scope == BUILT_IN and _is_usable(skill)}
    named = {directory_scope(path) for path in directories} - {
        directory_scope(path) for path in SkillSettings.now().DIRECTORIES
    }

    def order(skill: Skill) -> tuple[int, str]:
        replaces = skill.scope in named and skill.name in replaceable
        return (-1 if replaces else rank[skill.scope]), skill.name

    for skill in sorted(skills, key=order):
        version = skill.current
        by_itself = skill.scope != LIBRARY and skill.enabled_by_head is not False
        if not choices.get(skill.pk, by_itself):
            continue
        if there is not None and skill.name not in there.get(skill.scope, (skill.name,)):
            continue
        if first := names.taken_by(skill.name):
            collisions.append((skill.name, skill.scope, first))
            continue
        # A skill that agents do not get keeps its name, so that no other skill takes its place.
        names.take(skill.name, skill.scope)
        if version is not None and _is_usable(skill):
            version.skill = skill
            found[skill.name] = version
    return Available([found[name] for name in sorted(found)], collisions)


def _is_usable(skill: Skill) -> bool:
    return skill.current is not None and skill.current.trust != Trust.QUARANTINED


class _Names:
    """The names that are taken, including lookalikes in letters of another script."""

    def __init__(self) -> None:
        self._by_skeleton: dict[str, list[tuple[str, str]]] = {}

    def take(self, name: str, scope: str) -> None:
        self._by_skeleton.setdefault(skeleton(name), []).append((name, scope))

    def taken_by(self, name: str) -> str | None:
        """Return the scope that has `name` or a lookalike of it, None if the name is free."""
        found = (
            scope
            for other, scope in self._by_skeleton.get(skeleton(name), ())
            if other == name or not (other.isascii() and name.isascii())
        )
        return next(found, None)
