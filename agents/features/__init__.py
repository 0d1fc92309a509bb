"""The features that come with Vel. Each is one Django app, which can be removed.

It needs no Django, so that the command line can import it.
"""

FEATURES = (
    "skills_app",
    "memory",
    "agents.features.approvals",
    "agents.features.credentials",
    "agents.features.budgets",
    "agents.features.guardrails",
    "agents.features.custom_middleware",
    "agents.features.compaction",
    "agents.features.planning",
    "agents.features.fallbacks",
    "agents.features.subagents",
    "agents.features.databases",
    "agents.features.mcp_client",
    "agents.features.slack",
    "agents.features.structured_output",
    "agents.features.google_workspace",
    "agents.features.schedules",
    "agents.features.inbound_webhooks",
    "agents.features.conversations",
    "agents.features.conversation_export",
    "agents.features.forks",
    "agents.features.steering",
    "agents.features.traces",
    "agents.features.file_browser",
    "agents.features.command_palette",
    "agents.features.operator_console",
    "agents.features.provider_keys",
    "agents.features.agent_editor",
    "agents.features.notifications",
    "agents.features.mcp_server",
    "agents.features.operations",
)
"""For INSTALLED_APPS, after `agents`."""
