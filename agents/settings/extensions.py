"""Code of the operator, by dotted path."""

from agents.kernel.settings import FeatureSettings


class ToolSettings(FeatureSettings):
    """Tools of your own"""

    IN_PROGRAMS = True

    TOOLS: tuple[str, ...] = ()
    """Dotted paths of [tools](../guides/python.md#tools-from-functions) that agents can name."""


class AppSettings(FeatureSettings):
    """Features

    These are environment variables only. See [features](../contributing/architecture.md#features).
    """

    DICTIONARY = ""
    WITHOUT_DJANGO = True

    DISABLED_FEATURES: tuple[str, ...] = ()
    """Features of Vel that are not installed, for example `slack`."""
    APPS: tuple[str, ...] = ()
    """Django apps of your own that add something to Vel: dotted names."""
