"""The package `mcp`, for workers of an installation with servers."""

from importlib.util import find_spec

from agents.features.mcp_client.models import McpServer
from agents.kernel.features import Preload


def _is_needed() -> bool:
    return find_spec("mcp") is not None and McpServer.objects.filter(enabled=True).exists()


PRELOAD = (Preload(("agents.features.mcp_client.protocol.connection",), _is_needed),)
