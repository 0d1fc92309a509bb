"""Skills for agents of a program: the tools for skills, over a registry in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from agents.custom.tool_spec import ToolSpec
from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.config import DEFAULT_SKILLS, DeepAgentConfig
from agents.sdk.errors import SetupError
from skills_app.library.problems import InvalidSkill
from skills_app.library.registered import RegisteredSkills, RegistryShelf, check_registered
from skills_app.library.registry import SkillRegistry
from skills_app.library.shelf import (
    DEACTIVATE,
    LIST,
    LOAD,
    ListSkillsInput,
    ShelfError,
    SkillInput,
    deactivated,
    segment,
)
from skills_app.settings import SkillSettings

_TOOLS = frozenset({"list_skills", "load_skill", "deactivate_skill"})


class SkillInjectionMode(StrEnum):
    """The place of the instructions of a loaded skill.

    >>> SkillsMiddleware(injection_mode=SkillInjectionMode.SYSTEM_PROMPT).injection_mode
    <SkillInjectionMode.SYSTEM_PROMPT: 'system_prompt'>
    """

    TOOL_RESULT = "tool_result"
    SYSTEM_PROMPT = "system_prompt"


class SkillsMiddleware(BuiltInMiddleware):
    """Tools to find and load skills: those of directories, those of Vel, and registered ones.

    Args:
        skill_dirs: Directories of skills.
        include_builtin: Whether the skills of Vel are included.
        auto_load: Whether messages suggest skills: an agent's model gets the names of skills that
            fit a message, and `auto_detect_skill` returns the instructions.
        injection_mode: The place of the instructions of a loaded skill.

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
        self.registry = SkillRegistry(self.skill_dirs, include_builtin=include_builtin)
        self._is_named = skill_dirs is not None

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Return `config` with the skills of this middleware.

        If both set a value, the one that is not a default applies.

        Raises:
            SetupError: A skill is active, although each session loads its own, or a registered
                skill is invalid.
        """
        if active := self.registry.get_active():
            raise SetupError(
                f"The skill {active[0].name} is active already: in an agent, each session loads "
                "its own skills. Deactivate it, or put its text into system_prompt."
            )
        try:
            check_registered(self.registry)
        except InvalidSkill as error:
            raise SetupError(str(error)) from None
        usual = SkillInjectionMode.TOOL_RESULT
        mode = config.skill_mode if self.injection_mode == usual else str(self.injection_mode)
        given: list[Any] = [RegisteredSkills(self.registry)]
        if config.skill_dirs is not None:
            given += config.skill_dirs
        elif not self._is_named:
            given.append(DEFAULT_SKILLS)
        return replace(
            config,
            skill_dirs=[*given, *self.skill_dirs],
            include_builtin_skills=config.include_builtin_skills and self.include_builtin,
            auto_load_skills=config.auto_load_skills and self.auto_load,
            skill_mode=mode,
        )

    def get_tools(self) -> Sequence[ToolSpec]:
        return (
            ToolSpec("list_skills", LIST, self.list_skills, ListSkillsInput, effect="read"),
            ToolSpec("load_skill", LOAD, self.load_skill, SkillInput, effect="read"),
            ToolSpec("deactivate_skill", DEACTIVATE, self.deactivate_skill, SkillInput, "read"),
        )

    def list_skills(self, query: str | None = None) -> list[dict[str, Any]] | str:
        """Return all skills, or those that fit `query`."""
        return self._shelf.listed(query or "")

    def load_skill(self, name: str | None = None, *, skill_name: str | None = None) -> str:
        """Load a skill and the skills that it requires, and return their instructions.

        If that is impossible, returns a message with the reason.
        """
        shelf = self._shelf
        try:
            skills = shelf.to_load(name or skill_name or "")
        except ShelfError as problem:
            return str(problem)
        text = shelf.loaded(skills, in_prompt=self._in_prompt)
        self.registry.activate(skills[-1].name)
        return text

    activate_skill = load_skill

    def deactivate_skill(self, name: str | None = None, *, skill_name: str | None = None) -> str:
        """Deactivate a skill, and return a message."""
        try:
            skill = self._shelf.to_deactivate(name or skill_name or "")
        except ShelfError as problem:
            return str(problem)
        self.registry.deactivate(skill.name)
        return deactivated(skill)

    def auto_detect_skill(self, query: str) -> str | None:
        """Load the skill that fits `query` best, and return its instructions.

        Returns None without `auto_load`, or if no skill fits.
        """
        skill = self.registry.find_skill(query) if self.auto_load else None
        return None if skill is None else self.load_skill(skill.name)

    def get_system_prompt_segment(self) -> str:
        shelf = self._shelf
        active = list(shelf.active.values()) if self._in_prompt else []
        texts = [shelf.text(active, heads_only=False)] if active else []
        budget = SkillSettings.now().CATALOGUE_BYTES
        return segment(list(shelf.pinned.values()), texts, _TOOLS, budget, runs=True)

    def get_state(self) -> dict[str, Any]:
        return {"active": [skill.name for skill in self.registry.get_active()]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Make the skills in `state`, and those that they require, the only active ones.

        Raises `SetupError` for an unknown skill.
        """
        names = arguments.listed_texts("state: active", state.get("active", []), "names of skills")
        known = self._shelf.pinned
        if missing := [name for name in names if name not in known]:
            raise SetupError(f"state: there is no skill {missing[0]!r}.")
        self.registry.deactivate_all()
        for name in names:
            self.registry.activate(name)

    @property
    def _shelf(self) -> RegistryShelf:
        return RegistryShelf(self.registry)

    @property
    def _in_prompt(self) -> bool:
        return self.injection_mode is SkillInjectionMode.SYSTEM_PROMPT
