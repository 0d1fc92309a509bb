"""Read and restore a thread's loaded skills, as a part of the state of its session.

A Python program stores that state and restores it: see `agents.kernel.session_state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.kernel.session_state import SessionAgent, SessionState
from skills_app.actions.pins import load_by_name
from skills_app.models import ActiveSkill
from skills_app.queries.programs import unknown_skills

FIELD = "loaded_skills"


def read(thread_id: str) -> dict[str, Any]:
    """Return the names of the loaded skills, in the order of loading."""
    rows = ActiveSkill.objects.filter(thread_id=thread_id).order_by("pk")
    return {FIELD: list(rows.values_list("name", flat=True))}


def check(state: Any, agent: SessionAgent) -> dict[str, Any]:
    if not isinstance(state, Mapping) or set(state) != {FIELD}:
        raise ValueError(f'give {{"{FIELD}": [names]}}.')
    names = state[FIELD]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{FIELD} must be a list of names.")
    if len(set(names)) < len(names):
        raise ValueError(f"{FIELD} has a name twice.")
    if unknown := unknown_skills(names, agent):
        raise ValueError(
            f"this agent has no skill {unknown[0]!r}: give its directory, or leave it out."
        )
    return {FIELD: names}


def write(thread_id: str, state: dict[str, Any]) -> None:
    load_by_name(thread_id, state[FIELD])


SESSION_STATES = [SessionState("skills", {FIELD: []}, read, check, write)]
