"""The services that can be connected, from all features."""

from __future__ import annotations

from agents.features.credentials.public_pages import ConnectionCard
from agents.kernel.features import collect


def cards() -> list[ConnectionCard]:
    """Return the cards of the installed features, in their order."""
    return [card for _, card in collect("connections", "CARDS", skip_broken=True)]


def label_of(provider: str) -> str:
    """Return the name of a service for people; the stored one if its feature is not installed."""
    return next((card.label for card in cards() if card.provider == provider), provider)
