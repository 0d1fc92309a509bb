"""Who may change what an agent remembers."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import Agent
from agents.selectors.visible import is_approver


def may_change_memory(user: AbstractBaseUser, agent: Agent) -> bool:
    """Whether `user` may decide what `agent` remembers: its owner, and its approvers."""
    return agent.owner_id == user.pk or is_approver(user, agent.pk)
