"""The fields of an agent that need an additional permission, at every door."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import PermissionsMixin

from agents.kernel.options import option_classes
from agents.kernel.relations import relations
from agents.models import Agent
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed
from agents.spec import CONFIGURE_APPROVAL

SHARE_AGENT = "agents.share_agent"
"""People who run another person's agent trust its owner with their messages: these may get into the
agent's memory, which its owner controls, and tools act with their credentials."""

_ROWS = {
    "approver_groups": CONFIGURE_APPROVAL,
    "everyone": SHARE_AGENT,
    "groups": SHARE_AGENT,
}

RESERVED_SLUGS = frozenset({"agent-builder", "demo"})
"""The slugs of agents that Vel creates. Another agent with this slug would replace Vel's own."""


def guarded_fields() -> dict[str, str]:
    """Return the permissions that fields need in addition to the one to add or change agents."""
    of_options = {
        name: kind.permission
        for kind in option_classes()
        if kind.permission
        for name in kind.model_fields
    }
    return {
        **_ROWS,
        **of_options,
        **{relation.name: relation.permission for relation in relations() if relation.permission},
    }


def has_permission(user: Person, permission: str) -> bool:
    return isinstance(user, PermissionsMixin) and user.has_perm(permission)


def check_may_define(user: Person, *, is_new: bool, slug: str = "") -> None:
    """Raise `NotAllowed` unless `user` may define agents, and this one if its slug is reserved."""
    needed = "agents.add_agent" if is_new else "agents.change_agent"
    if not has_permission(user, needed):
        raise NotAllowed(f"This needs the permission {needed}.")
    if slug in RESERVED_SLUGS and not has_permission(user, "agents.change_agent"):
        raise NotAllowed(
            f"The slug {slug!r} is of an agent that Vel makes by itself: choose another one. "
            "Defining that agent needs the permission agents.change_agent."
        )


def check_may_define_some(user: Person) -> None:
    """Raise `NotAllowed` unless `user` may define any agents.

    Call this before you look up an agent: other users must not learn which agents exist.
    """
    if not any(has_permission(user, f"agents.{verb}_agent") for verb in ("add", "change")):
        raise NotAllowed("This needs the permission agents.add_agent or agents.change_agent.")


def check_may_set(user: Person, fields: Collection[str]) -> None:
    """Raise `NotAllowed` with those of `fields` that `user` may not change."""
    refused: dict[str, list[str]] = {}
    guarded = guarded_fields()
    for name in fields:
        needed = guarded.get(name)
        if needed is not None and not has_permission(user, needed):
            refused.setdefault(needed, []).append(name)
    if refused:
        details = "; ".join(
            f"{', '.join(names)} needs {needed}" for needed, names in refused.items()
        )
        raise NotAllowed(f"You may not change all of this: {details}.")


def may_read_definition(user: Person, agent: Agent) -> bool:
    """Return whether `user` may read an agent's definition, and not only use the agent."""
    if not user.is_authenticated:
        return False
    may = ("agents.view_agent", "agents.change_agent")
    return agent.owner_id == user.pk or any(has_permission(user, name) for name in may)
