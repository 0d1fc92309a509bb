"""A skill at a fixed version, which a run keeps from its start to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skills_app.library.package import Head

MOUNT = "/sandbox/skills"
"""The directory in the sandbox with one subdirectory for each skill."""
MOUNTS = (MOUNT, "/skills")
"""All directories with the skills. Packages for other products expect the second one."""


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
        """Return the directory of the skill's files in the sandbox."""
        return f"{MOUNT}/{self.name}"


def with_requirements(name: str, skills: Mapping[str, PinnedSkill]) -> list[PinnedSkill]:
    """Return the skill `name`, preceded by all skills that it requires, each once.

    Raises `UnmetRequirement`.
    """
    required = {key: skill.head.requires for key, skill in skills.items()}
    return [skills[found] for found in in_order(name, required)]


def by_name(skills: Iterable[PinnedSkill]) -> dict[str, PinnedSkill]:
    return {skill.name: skill for skill in skills}


class UnmetRequirement(Exception):
    """A required skill is missing, or skills require each other in a circle."""


def in_order(name: str, required: Mapping[str, Iterable[str]]) -> list[str]:
    """Return `name`, preceded by the names of all skills that it requires, each once.

    `required` maps each existing skill to the skills that it requires. The search uses no
    recursion, because chains may be long. Raises `UnmetRequirement`.
    """
    order: dict[str, None] = {}
    path: dict[str, None] = {name: None}
    left = [(name, iter(_of(name, "", required)))]
    while left:
        here, below_it = left[-1]
        below = next(below_it, None)
        if below is None:
            order[here] = None
            del path[here]
            left.pop()
        elif below in path:
            names = list(path)
            circle = " → ".join([*names[names.index(below) :], below])
            raise UnmetRequirement(f"Skills that require each other in a circle: {circle}.")
        elif below not in order:
            path[below] = None
            left.append((below, iter(_of(below, here, required))))
    return list(order)


def requiring(name: str, required: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the skills that require `name`, except those that `name` itself requires.

    `required` maps each skill to the skills that it requires. With the exception, a skill of a
    circle can be deactivated.
    """
    below = {name}
    left = [name]
    while left:
        further = [one for one in required.get(left.pop(), ()) if one not in below]
        below.update(further)
        left += further
    return [one for one, needs in required.items() if name in needs and one not in below]


def _of(name: str, asker: str, required: Mapping[str, Iterable[str]]) -> Iterable[str]:
    if name not in required:
        raise UnmetRequirement(f"{asker} requires the skill {name}, which this agent lacks.")
    return required[name]
