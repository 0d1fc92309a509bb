"""Modules that are imported before the workers are forked, if an MCP server is enabled.

They import the package `mcp`.
"""

from importlib.util import find_spec

from agents.features.mcp_client.models import McpServer
from agents.kernel.features import Preload


def _is_needed() -> bool:
    return find_spec("mcp") is not None and McpServer.objects.filter(enabled=True).exists()


_MODULES = (
    "agents.features.mcp_client.protocol.connection",
    "agents.features.mcp_client.protocol.results",
    "agents.features.mcp_client.runs",
)
PRELOAD = (Preload(_MODULES, _is_needed),)
