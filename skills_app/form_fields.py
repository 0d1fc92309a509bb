"""The names of skills that the form of an agent suggests."""

from __future__ import annotations

from agents.models import Agent
from skills_app.queries.available import available_skills


def skill_names(agent: Agent) -> list[str]:
    """Return the skills that runs of the agent have now."""
    found = available_skills(agent.pk, built_in=agent.builtin_skills)
    return [version.skill.name for version in found.versions]


SUGGESTIONS = {"skills": skill_names}
