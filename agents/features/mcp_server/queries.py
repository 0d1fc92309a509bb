"""Which agents and runs an MCP client knows of."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.models import Agent, Run
from agents.selectors.visible import Person, agents_for

MCP_SOURCE = "mcp"
"""`Run.source` of what MCP clients began."""


def mcp_tools_for(user: Person) -> QuerySet[Agent]:
    """Those of `agents_for` that are offered as tools to MCP clients."""
    return agents_for(user).filter(mcp_tool=True)


def mcp_runs_for(user: Person) -> QuerySet[Run]:
    """Runs that `user` began through MCP: all that an MCP client knows of, whatever the rights."""
    if not user.is_authenticated:
        return Run.objects.none()
    return Run.objects.filter(is_copy=False, owner=user.pk, parent=None, source=MCP_SOURCE)
