"""The agents and runs that are visible to an MCP client."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.models import Agent, Run
from agents.selectors.visible import Person, agents_for

MCP_SOURCE = "mcp"
"""`Run.source` of runs that MCP clients start."""


def mcp_tools_for(user: Person) -> QuerySet[Agent]:
    """Return the agents of `agents_for` that are offered as tools to MCP clients."""
    return agents_for(user).filter(mcp_tool=True)


def mcp_runs_for(user: Person) -> QuerySet[Run]:
    """Return the runs that `user` started through MCP. An MCP client can access no others."""
    if not user.is_authenticated:
        return Run.objects.none()
    return Run.objects.filter(is_copy=False, owner=user.pk, parent=None, source=MCP_SOURCE)
