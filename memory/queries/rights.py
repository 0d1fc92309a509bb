"""The permission to change an agent's memory."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import Agent
from agents.selectors.visible import is_approver


def may_change_memory(user: AbstractBaseUser, agent: Agent) -> bool:
    """Return whether `user` may change the memory of `agent`: its owner and its approvers may."""
    return agent.owner_id == user.pk or is_approver(user, agent.pk)
