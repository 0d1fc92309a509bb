"""Slack's Web API, as far as agents use it."""
