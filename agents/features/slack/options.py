from agents.integrations import Integration

INTEGRATIONS = (Integration("slack", "Slack"),)
