from agents.kernel.features import Integration

INTEGRATIONS = (Integration("gmail", "Gmail"), Integration("calendar", "Google Calendar"))
