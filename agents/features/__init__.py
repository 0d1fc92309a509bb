"""The features that come with Vel. Each is one Django app, which can be removed.

Needs no Django, so that settings can import it.
"""

FEATURES = (
    "agents.features.credentials",
    "agents.features.slack",
    "agents.features.google_workspace",
)
"""For INSTALLED_APPS, after `agents`."""
