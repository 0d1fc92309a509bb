"""A skill of a run, the same from the run's start to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skills_app.library.package import Head
from skills_app.library.requirements import in_order

MOUNT = "/sandbox/skills"
"""Where commands and file tools find the packages, each in a directory with its name."""
MOUNTS = (MOUNT, "/skills")
"""The second place is for packages of other products, which expect it."""


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
        """Return the directory of its files in the sandbox."""
        return f"{MOUNT}/{self.name}"


def with_requirements(name: str, skills: Mapping[str, PinnedSkill]) -> list[PinnedSkill]:
    """Return the skill `name` after all its requirements, each once. Raises `UnmetRequirement`."""
    required = {key: skill.head.requires for key, skill in skills.items()}
    return [skills[found] for found in in_order(name, required)]


def by_name(skills: Iterable[PinnedSkill]) -> dict[str, PinnedSkill]:
    return {skill.name: skill for skill in skills}
