"""Django system checks of what the apps need, in any project. They register themselves."""

from agents.checks import embedding, events, features, places, settings, tools

__all__ = ["embedding", "events", "features", "places", "settings", "tools"]
