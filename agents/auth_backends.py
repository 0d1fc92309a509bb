"""Django's permissions, for one agent: what `AUTHENTICATION_BACKENDS` names after `ModelBackend`.

Who may decide is told by `agents.selectors.visible`, which works without this backend too. It lets
`user.has_perm("agents.approve_toolcall", agent)` give the same answer, in templates, in object
permissions of REST views and in code outside of Vel.
"""

from __future__ import annotations

from django.contrib.auth.backends import BaseBackend
from django.db.models import Model

from agents.models import Agent
from agents.selectors.visible import APPROVE, Person, is_approver


class AgentApproverBackend(BaseBackend):
    """Signs nobody in. Gives approvers of an agent the permission to approve, for that agent."""

    def get_group_permissions(self, user_obj: Person, obj: Model | None = None) -> set[str]:
        """The permission to approve where `obj` is an agent and `user_obj` approves for it."""
        if not isinstance(obj, Agent) or not user_obj.is_authenticated or not user_obj.is_active:
            return set()
        return {APPROVE} if is_approver(user_obj, obj.pk) else set()
