"""An agent with all its related rows, in the form that the audit log compares."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agents.kernel.options import option_fields
from agents.kernel.relations import relations
from agents.models import Agent

_NOT_TOLD = {"id", "created_at", "updated_at"}


def agent_state(agent: Agent, *, empty: Collection[str] = ()) -> dict[str, object]:
    """Return the stored values of `agent`, a row as the database holds it, by field."""
    state: dict[str, Any] = {
        field.name: getattr(agent, field.attname)
        for field in Agent._meta.concrete_fields
        if field.name not in _NOT_TOLD
    }
    # Options by their own names, like the fields that have a column.
    state |= {**{name: getattr(agent, name) for name in option_fields()}, **state.pop("definition")}
    state["owner"] = agent.owner.get_username() if agent.owner else None
    for relation in relations():
        state[relation.name] = relation.state(
            () if relation.name in empty else list(relation.rows(agent))
        )
    for name in ("groups", "approver_groups"):
        rows = [] if name in empty else getattr(agent, name).values_list("name", flat=True)
        state[name] = sorted(rows)
    return state
