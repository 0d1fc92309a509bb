"""The loaded skills in the state of a Python program's session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.kernel.session_state import SessionAgent, SessionState
from skills_app.actions.pins import load_by_name
from skills_app.library.registry import SkillRegistry
from skills_app.models import ActiveSkill
from skills_app.options import SkillOptions
from skills_app.queries.available import available_skills

FIELD = "loaded_skills"


def read(thread_id: str) -> dict[str, Any]:
    """Return the names in the order in which the skills were loaded."""
    rows = ActiveSkill.objects.filter(thread_id=thread_id).order_by("pk")
    return {FIELD: list(rows.values_list("name", flat=True))}


def check(state: Any, agent: SessionAgent) -> dict[str, Any]:
    if not isinstance(state, Mapping) or set(state) != {FIELD}:
        raise ValueError(f'give {{"{FIELD}": [names]}}.')
    names = state[FIELD]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{FIELD} must be a list of names.")
    if len(set(names)) < len(names):
        raise ValueError(f"{FIELD} contains a name twice.")
    if unknown := _unknown(names, agent):
        raise ValueError(
            f"this agent has no skill {unknown[0]!r}: give its directory, or leave it out."
        )
    return {FIELD: names}


def _unknown(names: Sequence[str], agent: SessionAgent) -> list[str]:
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
    # A run stores the skills of directories when it starts.
    found = SkillRegistry([*map(Path, agent.skill_directories)], include_builtin=built_in)
    there = {skill.name for skill in found.list() if skill.enabled}
    return [name for name in missing if name not in there]


def write(thread_id: str, state: dict[str, Any]) -> None:
    load_by_name(thread_id, state[FIELD])


SESSION_STATES = [SessionState("skills", {FIELD: []}, read, check, write)]
