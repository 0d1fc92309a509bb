from agents.kernel.integrations import Integration

INTEGRATIONS = (Integration("gmail", "Gmail"), Integration("calendar", "Google Calendar"))
