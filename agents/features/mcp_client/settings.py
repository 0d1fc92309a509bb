"""MCP servers."""

from agents.kernel.settings import FeatureSettings


class McpSettings(FeatureSettings):
    """MCP servers

    See [MCP](../guides/mcp.md).
    """

    MCP_PRIVATE_HOSTS: tuple[str, ...] = ()
    """`host` or `host:port` of MCP servers that are allowed although they are not public, also over
    http."""


SETTINGS = (McpSettings,)
