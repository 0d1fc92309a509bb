"""Permissions to change an agent's memory, and a person's own memory with this agent."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import Agent
from agents.selectors.visible import agents_for, is_approver
from memory.paths import is_personal


def may_change_memory(user: AbstractBaseUser, agent: Agent) -> bool:
    """Return whether `user` may change the memory of `agent`: its owner and its approvers may."""
    return agent.owner_id == user.pk or is_approver(user, agent.pk)


def may_change_file(user: AbstractBaseUser, agent: Agent, path: str) -> bool:
    """Return whether `user` may change the file at `path`.

    All people who may use the agent may change their own `me/`.
    """
    if is_personal(path):
        return agents_for(user).filter(pk=agent.pk).exists()
    return may_change_memory(user, agent)


def reader_of(user: AbstractBaseUser, path: str) -> int | None:
    """Return the owner of a file that `user` reads: the user's id below `me/`, None elsewhere."""
    return user.pk if is_personal(path) else None
