from agents.kernel.features import Integration

INTEGRATIONS = (Integration("slack", "Slack"),)
