"""An agent with all that belongs to it, as the audit log compares it before and after."""

from __future__ import annotations

from typing import Any

from django.forms.models import model_to_dict

from agents.models import Agent, Subagent

_NOT_TOLD = {"id", "created_at", "updated_at"}


def agent_state(agent_id: str) -> dict[str, object] | None:
    """What is stored, by field; None where there is no such agent."""
    agent = Agent.objects.select_related("owner").filter(pk=agent_id).first()
    if agent is None:
        return None
    state: dict[str, Any] = {
        field.name: getattr(agent, field.attname)
        for field in Agent._meta.concrete_fields
        if field.name not in _NOT_TOLD
    }
    state["owner"] = agent.owner.get_username() if agent.owner else None
    for name in ("databases", "groups", "approver_groups"):
        state[name] = sorted(getattr(agent, name).values_list("name", flat=True))
    state["subagents"] = {row.name: _subagent(row) for row in agent.subagents.order_by("name")}
    return state


def _subagent(row: Subagent) -> dict[str, Any]:
    return {
        name: value
        for name, value in model_to_dict(row, exclude=["id", "agent", "name"]).items()
        if value not in (None, "", [])
    }
