"""Titles of conversations."""

from agents.kernel.settings import FeatureSettings

OFF = "off"
OF_AGENT = "agent"
OFFLINE = "scripted"
"""The provider of the offline model, which writes no titles."""


class ConversationSettings(FeatureSettings):
    """Conversations

    See [titles of conversations](../guides/web-interface.md#titles-of-conversations).
    """

    TITLE_MODEL: str = OF_AGENT
    """The model that writes the title of a conversation: `agent` for the agent's own model, or
    `PROVIDER:MODEL` for another one. It gets the beginning of the first message and of the answer
    of each conversation. `off`: a title is the beginning of the first message."""


SETTINGS = (ConversationSettings,)


def titles_wanted() -> bool:
    return ConversationSettings.now().TITLE_MODEL not in ("", OFF)


def may_have_title(provider: str) -> bool:
    """Return whether the conversations of an agent with this provider get a title by a model."""
    wanted = ConversationSettings.now().TITLE_MODEL
    return titles_wanted() and (wanted != OF_AGENT or provider != OFFLINE)
