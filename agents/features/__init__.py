"""The features that come with Vel. Each is one Django app, which can be removed.

It imports nothing: processes without Django import modules of features, too.
"""

FEATURES = (
    "agents.features.credentials",
    "agents.features.slack",
    "agents.features.google_workspace",
    "agents.features.databases",
    "agents.features.forks",
)
"""For INSTALLED_APPS, after `agents`."""
