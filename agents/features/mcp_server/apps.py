from agents.kernel.features import FeatureConfig


class McpServerConfig(FeatureConfig):
    name = "agents.features.mcp_server"
    label = "vel_mcp_server"
    verbose_name = "MCP server"
    requires = ("agents",)
