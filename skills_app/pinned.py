"""A skill as a run has it, from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skills_app.models import SkillVersion
from skills_app.package import Head

MOUNT = "/sandbox/skills"
"""Where commands and file tools see the packages, each below its name."""


@dataclass(frozen=True, slots=True)
class PinnedSkill:
    version_id: int
    content_hash: str
    trust: str
    head: Head = field(compare=False)

    @property
    def name(self) -> str:
        return self.head.name

    @property
    def description(self) -> str:
        return self.head.description

    @property
    def directory(self) -> str:
        """Its files in the sandbox."""
        return f"{MOUNT}/{self.name}"


def pinned(version: SkillVersion) -> PinnedSkill:
    return PinnedSkill(version.pk, version.content_hash, version.trust, version.fields)


class UnmetRequirement(Exception):
    """A skill requires what its agent does not have, or, in a circle, itself."""


def with_requirements(name: str, skills: Mapping[str, PinnedSkill]) -> list[PinnedSkill]:
    """The skill `name` after all that it requires, each once. Raises `UnmetRequirement`."""
    order: dict[str, PinnedSkill] = {}
    _add(name, skills, order, [])
    return list(order.values())


def _add(
    name: str, skills: Mapping[str, PinnedSkill], order: dict[str, PinnedSkill], path: list[str]
) -> None:
    if name in path:
        circle = " → ".join([*path[path.index(name) :], name])
        raise UnmetRequirement(f"Skills that require each other in a circle: {circle}.")
    if name in order:
        return
    skill = skills.get(name)
    if skill is None:
        raise UnmetRequirement(f"{path[-1]} requires the skill {name}, which this agent has not.")
    for required in skill.head.requires:
        _add(required, skills, order, [*path, name])
    order[name] = skill


def by_name(skills: Iterable[PinnedSkill]) -> dict[str, PinnedSkill]:
    return {skill.name: skill for skill in skills}
