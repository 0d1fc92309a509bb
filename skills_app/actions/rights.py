"""Check the permissions for skills."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, PermissionsMixin

from agents.models import Agent
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed

MANAGE = "skills_app.manage_library"
REVIEW = "skills_app.review_skill"
_CHANGE_AGENT = "agents.change_agent"


def may_change_skills(by: Person, agent: Agent) -> bool:
    """Return whether `by` may change the skills of `agent`.

    The agent's owner may, and people who may change agents.
    """
    if isinstance(by, AnonymousUser) or not by.is_active:
        return False
    return agent.owner_id == by.pk or _has(by, _CHANGE_AGENT)


def may_manage_library(by: Person) -> bool:
    return _has(by, MANAGE)


def may_review(by: Person) -> bool:
    return _has(by, REVIEW)


def check_may_change(agent: Agent, by: Person) -> None:
    """Raise `NotAllowed` unless `by` may change the skills of `agent`."""
    if not may_change_skills(by, agent):
        raise NotAllowed(
            f"Only the owner of {agent.name}, and people who may change agents, can change its "
            "skills."
        )


def check_may_manage(by: Person) -> None:
    """Raise `NotAllowed` unless `by` may manage the library."""
    if not may_manage_library(by):
        raise NotAllowed(f"To change the library, you need the permission {MANAGE}.")


def check_may_review(by: Person) -> None:
    """Raise `NotAllowed` unless `by` may review skills."""
    if not may_review(by):
        raise NotAllowed(f"To review skills, you need the permission {REVIEW}.")


def _has(by: Person, permission: str) -> bool:
    return isinstance(by, PermissionsMixin) and by.is_active and by.has_perm(permission)
