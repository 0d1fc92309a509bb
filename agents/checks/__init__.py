"""Django system checks of Vel's apps. They register themselves."""

from agents.checks import embedding, events, features, places, settings, tools

__all__ = ["embedding", "events", "features", "places", "settings", "tools"]
