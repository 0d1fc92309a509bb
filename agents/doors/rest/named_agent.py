"""Lookup of the agent in a path."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import Agent
from agents.selectors.visible import agents_for
from agents.services.errors import NotFound


def agent_of(user: AbstractBaseUser, agent_id: str) -> Agent:
    """Return an agent that `user` can use, by id only: slugs may look like ids of other agents."""
    agent = agents_for(user).filter(pk=agent_id).first()
    if agent is None:
        raise NotFound(f"There is no agent {agent_id!r} that you may use.", code="unknown_agent")
    return agent
