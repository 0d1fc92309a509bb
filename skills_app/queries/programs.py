"""Find the skills that the agent of a Python program can load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agents.kernel.session_state import SessionAgent
from skills_app.library.registry import SkillRegistry
from skills_app.options import SkillOptions
from skills_app.queries.available import available_skills
from skills_app.settings import SkillSettings


def unknown_skills(names: Sequence[str], agent: SessionAgent) -> list[str]:
    """Return the names in `names` that the next run of the agent will not have."""
    if not names:
        return []
    built_in = agent.spec.option(SkillOptions).builtin_skills
    rows = available_skills(
        agent.agent_id, built_in=built_in, directories=agent.skill_directories
    ).versions
    stored = {version.skill.name for version in rows}
    missing = [name for name in names if name not in stored]
    if not missing:
        return []
    # Read the directories, because only the start of a run stores their skills.
    directories = [*SkillSettings.now().DIRECTORIES, *agent.skill_directories]
    found = SkillRegistry([*map(Path, directories)], include_builtin=built_in)
    there = {skill.name for skill in found.list() if skill.enabled}
    return [name for name in missing if name not in there]
