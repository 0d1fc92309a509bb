"""Slack."""

from agents.kernel.settings import FeatureSettings


class SlackSettings(FeatureSettings):
    """Slack

    See [other services](../guides/integrations.md).
    """

    SLACK_URL: str = "https://slack.com/api/"
    """Address of Slack's Web API."""


SETTINGS = (SlackSettings,)
