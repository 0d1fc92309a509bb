"""The rights to define agents, and the fields that need an additional permission.

The REST API, the pages, the admin and the commands all use these checks.
"""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import PermissionsMixin

from agents.kernel.options import option_classes
from agents.kernel.relations import relations
from agents.models import Agent
from agents.selectors.visible import Person
from agents.services.errors import NotAllowed
from agents.spec import CONFIGURE_APPROVAL

ADD_AGENT = "agents.add_agent"
CHANGE_AGENT = "agents.change_agent"
DEFINES_NONE = f"This needs the permission {ADD_AGENT} or {CHANGE_AGENT}, or an agent of your own."
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
    """Raise `NotAllowed` unless `user` has the permission to add (`is_new`) or to change agents.

    A reserved `slug` always requires the permission to change agents.
    """
    needed = ADD_AGENT if is_new else CHANGE_AGENT
    if not has_permission(user, needed):
        raise NotAllowed(f"This needs the permission {needed}.")
    if slug in RESERVED_SLUGS and not has_permission(user, CHANGE_AGENT):
        raise NotAllowed(
            f"The slug {slug!r} is reserved for an agent that Vel creates automatically. Choose "
            f"another slug. Defining that agent requires the permission {CHANGE_AGENT}."
        )


def may_change_definition(user: Person, agent: Agent) -> bool:
    """Return whether `user` may change fields of `agent`: its owner, and people with permission.

    `check_may_change` has the fields that need more.
    """
    return agent.owner_id == user.pk or has_permission(user, CHANGE_AGENT)


def check_may_change(user: Person, agent: Agent, fields: Collection[str]) -> None:
    """Raise `NotAllowed` unless `user` may change these fields of `agent`, which is stored.

    An owner without the permission to change agents cannot turn the agent on again, and cannot
    change the integrations of an agent that others use, because tools act with their credentials.
    """
    if not has_permission(user, CHANGE_AGENT):
        if agent.owner_id != user.pk or agent.slug in RESERVED_SLUGS:
            check_may_define(user, is_new=False, slug=agent.slug)
        if "is_active" in fields and not agent.is_active:
            raise NotAllowed(f"Turning an agent on again needs the permission {CHANGE_AGENT}.")
        is_shared = agent.everyone or agent.groups.exists()
        if "integrations" in fields and is_shared and not has_permission(user, SHARE_AGENT):
            raise NotAllowed(
                "Others use this agent, and services are used with their credentials: to change "
                f"its integrations, you need the permission {SHARE_AGENT}."
            )
    check_may_set(user, fields)


def check_may_define_some(user: Person) -> None:
    """Raise `NotAllowed` unless `user` may define any agents or owns one.

    Call this before you look up an agent: other users must not learn which agents exist.
    """
    if not _may_define(user) and not Agent.objects.filter(owner=user.pk).exists():
        raise NotAllowed(DEFINES_NONE)


def check_may_find(user: Person, agent: Agent | None) -> None:
    """Raise `NotAllowed` unless `user` may define any agents, or owns `agent`.

    The message is the same whether the agent exists or not (None).
    """
    if not _may_define(user) and (agent is None or agent.owner_id != user.pk):
        raise NotAllowed(DEFINES_NONE)


def _may_define(user: Person) -> bool:
    return any(has_permission(user, name) for name in (ADD_AGENT, CHANGE_AGENT))


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
    may = ("agents.view_agent", CHANGE_AGENT)
    return agent.owner_id == user.pk or any(has_permission(user, name) for name in may)
