"""Hooks for the skills of a Python program's agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.programs import OptionArguments, ProgramOptions
from agents.kernel.session_state import SessionAgent
from skills_app.options import SkillOptions

with lazy_modules:
    # Import late, because this module needs Django's apps.
    from skills_app.queries import programs


class SkillsOfSubagents(ProgramOptions):
    names = ("subagents",)

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def check_agent(self, values: Mapping[str, Any], agent: SessionAgent) -> None:
        for item in values["subagents"]:
            if unknown := programs.unknown_skills(item.skills, agent):
                raise ValueError(
                    f"The subagent {item.name}: skills: this agent has no skill {unknown[0]!r}: "
                    "give its directory in skill_dirs, or leave it out."
                )


PROGRAM_OPTIONS = (OptionArguments(SkillOptions, "skill_mode"), SkillsOfSubagents())
