"""An authentication backend with permissions for one agent, for use after `ModelBackend`.

`agents.selectors.visible` finds approvers without this backend. The backend makes
`user.has_perm("agents.approve_toolcall", agent)` consistent with it, for templates, object
permissions of REST views and code outside of Vel.
"""

from __future__ import annotations

from django.contrib.auth.backends import BaseBackend
from django.db.models import Model

from agents.models import Agent
from agents.selectors.visible import APPROVE, Person, is_approver


class AgentApproverBackend(BaseBackend):
    """A backend that gives approvers of an agent the permission to approve. It has no sign-in."""

    def get_group_permissions(self, user_obj: Person, obj: Model | None = None) -> set[str]:
        """Return the permission to approve if `obj` is an agent and `user_obj` approves for it."""
        if not isinstance(obj, Agent) or not user_obj.is_authenticated or not user_obj.is_active:
            return set()
        return {APPROVE} if is_approver(user_obj, obj.pk) else set()
