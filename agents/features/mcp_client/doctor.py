"""Checks of MCP servers for `vel doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.queries import status_of
from agents.hidden_text import visible
from agents.kernel.findings import Finding, Level
from agents.settings import DataSettings
from sandbox.toolboxes.find import toolbox_names


def check_mcp_servers() -> Iterator[Finding]:
    """Check the enabled MCP servers. No server is started or called."""
    rows = list(McpServer.objects.filter(enabled=True).defer("secrets"))
    if rows and find_spec("mcp") is None:
        yield Finding(
            "MCP servers",
            Level.BROKEN,
            f"{len(rows)} are defined, and the package mcp is not installed",
            "pip install 'vel[mcp]'",
        )
        return
    toolboxes = toolbox_names(DataSettings.now().toolboxes)
    for row in rows:
        subject = f"MCP server {row.slug}"
        if row.toolbox and row.toolbox not in toolboxes:
            yield Finding(
                subject,
                Level.BROKEN,
                f"its toolbox {row.toolbox!r} is not on this host",
                f"vel toolbox create {row.toolbox} PACKAGE…",
            )
        elif row.problem:
            yield Finding(
                subject,
                Level.NOTE,
                f"{status_of(row)}: {visible(row.problem)[:300]}",
                "Fix this, then fetch its tools in the admin.",
            )
        elif row.found is not None or not row.tools:
            yield Finding(
                subject,
                Level.NOTE,
                status_of(row),
                "Look at its tools in the admin and accept them there.",
            )
        else:
            yield Finding(subject, Level.OK, status_of(row))


DATABASE_CHECKS = [check_mcp_servers]
