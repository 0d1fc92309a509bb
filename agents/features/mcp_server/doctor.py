"""Whether agents can be offered as tools."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from agents.kernel.findings import Finding, Level
from agents.models import Agent


def check_offers() -> Iterator[Finding]:
    offered = Agent.objects.filter(mcp_tool=True, is_active=True).count()
    if not offered:
        return
    if find_spec("mcp") is None:
        yield Finding(
            "agents over MCP",
            Level.BROKEN,
            f"{offered} are offered as tools, and the package mcp is not installed",
            "pip install 'vel[mcp]'",
        )
        return
    yield Finding("agents over MCP", Level.OK, f"{offered} offered as tools at /mcp")


DATABASE_CHECKS = [check_offers]
