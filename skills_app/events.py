"""Skills: packages of instructions that the agent loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import TypedDict

from agents.events.event import Event


class SkippedSkill(TypedDict):
    """A skill that the run does not have, and why."""

    skill: str
    """Its name, its path, or the place where it was found."""
    message: str
    """The problem, for people."""


@dataclass(frozen=True, kw_only=True)
class SkillLoaded(Event):
    """The agent loaded a skill, or a skill that another one requires."""

    type: ClassVar[str] = "skill.loaded"

    name: str
    """The name of the skill."""
    version: str
    """The version that its author wrote, or an empty text."""
    trust: str
    """Its trust level: `built-in`, `reviewed`, `local` or `imported`."""
    content_hash: str
    """SHA-256 of its files, in hexadecimal."""


@dataclass(frozen=True, kw_only=True)
class SkillDeactivated(Event):
    """The agent deactivated a skill."""

    type: ClassVar[str] = "skill.deactivated"

    name: str
    """The name of the skill."""


@dataclass(frozen=True, kw_only=True)
class SkillsSkipped(Event):
    """Skills were left out when the run started."""

    type: ClassVar[str] = "skills.skipped"

    problems: list[SkippedSkill]
    """At most 50 of the problems."""
    count: int
    """How many problems there are."""


EVENTS = [SkillLoaded, SkillDeactivated, SkillsSkipped]
