"""Which model writes titles."""

from __future__ import annotations

from agents.features.conversations.settings import (
    OF_AGENT,
    OFF,
    OFFLINE,
    ConversationSettings,
    may_have_title,
)
from agents.providers.registry import PROVIDERS


def title_model(provider: str, model: str) -> tuple[str, str] | None:
    """Return the provider and the model of titles, or None without one.

    `provider` and `model` are the agent's own. Raises `ValueError` for an invalid setting.
    """
    if not may_have_title(provider):
        return None
    wanted = ConversationSettings.now().TITLE_MODEL
    return (provider, model) if wanted == OF_AGENT else parse_model(wanted)


def parse_model(text: str) -> tuple[str, str]:
    """Return the provider and the model of `PROVIDER:MODEL`. Raises `ValueError`."""
    provider, _, model = (part.strip() for part in text.partition(":"))
    known = [name for name in PROVIDERS if name != OFFLINE]
    if provider not in known or not model:
        raise ValueError(
            f"expected {OF_AGENT!r}, {OFF!r}, or PROVIDER:MODEL such as "
            f"anthropic:claude-haiku-4-5 (providers: {', '.join(known)}), got {text[:200]!r}."
        )
    return provider, model
