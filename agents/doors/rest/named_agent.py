"""The agent that a path names."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import Agent
from agents.selectors.visible import agents_for
from agents.services.errors import NotFound


def agent_of(user: AbstractBaseUser, agent_id: str) -> Agent:
    """An agent that `user` may use, by its id alone: another's slug may look like one."""
    agent = agents_for(user).filter(pk=agent_id).first()
    if agent is None:
        raise NotFound(f"There is no agent {agent_id!r} that you may use.", code="unknown_agent")
    return agent
