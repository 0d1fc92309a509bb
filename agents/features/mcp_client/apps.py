from agents.kernel.features import FeatureConfig


class McpClientConfig(FeatureConfig):
    name = "agents.features.mcp_client"
    label = "vel_mcp_client"
    verbose_name = "MCP servers"
    order = 700
    requires = ("agents",)
    middleware_order = {"mcp": 700}
