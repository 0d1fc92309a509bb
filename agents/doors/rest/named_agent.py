"""Lookup of the agent in a path."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import Agent
from agents.selectors.visible import agent_named, agents_for
from agents.services.errors import NotFound


def agent_of(user: AbstractBaseUser, name: str) -> Agent:
    """Return an agent that `user` can use, by its id or slug."""
    agent = agent_named(agents_for(user), name)
    if agent is None:
        raise NotFound(f"There is no agent {name!r} that you may use.", code="unknown_agent")
    return agent
