"""Fallbacks."""

from agents.kernel.settings import FeatureSettings


class FallbackSettings(FeatureSettings):
    """Fallbacks

    See [fallbacks](../guides/fallbacks.md).
    """

    IN_PROGRAMS = True

    FALLBACK_WITHOUT_KEY: bool = False
    """Count a model as unavailable if its key is missing or refused: the agent's next model
    continues."""


SETTINGS = (FallbackSettings,)
