"""Skills as a component over directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.config import DeepAgentConfig
from skills_app.library.registry import SkillRegistry


class SkillInjectionMode(StrEnum):
    """The place of the instructions of a loaded skill.

    >>> SkillsMiddleware(injection_mode=SkillInjectionMode.SYSTEM_PROMPT).injection_mode
    <SkillInjectionMode.SYSTEM_PROMPT: 'system_prompt'>
    """

    TOOL_RESULT = "tool_result"
    SYSTEM_PROMPT = "system_prompt"


class SkillsMiddleware(BuiltInMiddleware):
    """Tools to find and load skills: those of directories and those of Vel.

    >>> skills = SkillsMiddleware(injection_mode="system_prompt")
    >>> "reporting" in [skill["name"] for skill in skills.list_skills()]
    True
    >>> agent = create_deep_agent(middleware=[skills])
    """

    name = "skills"
    leave_out = "include_builtin_skills=False, skill_dirs=[]"
    adds_up = True

    def __init__(
        self,
        skill_dirs: list[str] | None = None,
        include_builtin: bool = True,
        auto_load: bool = True,
        injection_mode: SkillInjectionMode | str = SkillInjectionMode.TOOL_RESULT,
    ) -> None:
        given = [] if skill_dirs is None else skill_dirs
        self.skill_dirs = arguments.listed("skill_dirs", given, "directories")
        self.include_builtin = include_builtin
        self.auto_load = auto_load
        arguments.check_flags(self, ("include_builtin", "auto_load"))
        try:
            self.injection_mode = SkillInjectionMode(injection_mode)
        except ValueError:
            modes = " or ".join(SkillInjectionMode)
            raise arguments.wrong("injection_mode", modes, injection_mode) from None
        self.registry = SkillRegistry(skill_dirs=self.skill_dirs, include_builtin=include_builtin)

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Add its directories. Of two values, the one that is no default applies."""
        usual = SkillInjectionMode.TOOL_RESULT
        mode = config.skill_mode if self.injection_mode == usual else str(self.injection_mode)
        return replace(
            config,
            skill_dirs=[*(config.skill_dirs or ()), *self.skill_dirs],
            include_builtin_skills=config.include_builtin_skills and self.include_builtin,
            skill_mode=mode,
        )

    def get_tools(self) -> Sequence[ToolSpec]:
        return (
            ToolSpec.from_function(self.list_skills, effect="read"),
            ToolSpec.from_function(self.load_skill, effect="read"),
            ToolSpec.from_function(self.activate_skill, effect="read"),
            ToolSpec.from_function(self.deactivate_skill, effect="read"),
        )

    def list_skills(self, query: str | None = None) -> list[dict[str, Any]]:
        """List the skills, or those that answer a query."""
        if query is None:
            return [dict(item) for item in self.registry.list_skills()]
        return [
            {"name": skill.name, "description": skill.description}
            for skill in self.registry.search(query)
        ]

    def load_skill(self, skill_name: str) -> str:
        """Load a skill's instructions and its documents."""
        skill = self.registry.get(skill_name)
        if skill is None or not self.registry.activate(skill.name):
            known = ", ".join(item["name"] for item in self.registry.list_skills())
            return f"There is no skill {skill_name!r}. The skills are: {known}."
        return skill.get_full_context()

    def activate_skill(self, name: str) -> dict[str, Any]:
        """Load a skill; it is active from then on."""
        skill = self.registry.get(name)
        if skill is None or not self.registry.activate(skill.name):
            return {"error": f"There is no skill {name!r}."}
        return {"activated": True, "skill": skill.name, "content": skill.content}

    def deactivate_skill(self, name: str) -> dict[str, bool]:
        """Put a skill away."""
        return {"deactivated": self.registry.deactivate(name)}

    def auto_detect_skill(self, query: str) -> str | None:
        """Return the instructions of the skill that fits `query` best; None without `auto_load`."""
        skill = self.registry.find_skill(query) if self.auto_load else None
        return None if skill is None else self.load_skill(skill.name)

    def get_system_prompt_segment(self) -> str:
        skills = "\n".join(
            f"- {item['name']}: {item['description']}" for item in self.registry.list_skills()
        )
        return f"## Skills\nLoad the skill that fits with `load_skill` before you begin.\n{skills}"

    def get_state(self) -> dict[str, Any]:
        return {"active": [skill.name for skill in self.registry.get_active()]}

    def load_state(self, state: dict[str, Any]) -> None:
        for skill in self.registry.get_active():
            self.registry.deactivate(skill.name)
        for name in state.get("active", ()):
            self.registry.activate(name)
