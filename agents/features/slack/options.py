from agents.kernel.integrations import Integration

INTEGRATIONS = (Integration("slack", "Slack"),)
