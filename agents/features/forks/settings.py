"""Forks."""

from agents.kernel.settings import Bytes, FeatureSettings


class ForkSettings(FeatureSettings):
    """Forks"""

    FORK_BYTES: Bytes = 10 * 1024**3
    """Bytes that the forks of one person may have copied, in total. 0: no limit."""


SETTINGS = (ForkSettings,)
