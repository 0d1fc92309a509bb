"""Code of the operator: tools, guardrails and hooks, by dotted path."""

from agents.kernel.settings import Count, FeatureSettings, Positive


class ToolSettings(FeatureSettings):
    """Tools of your own"""

    IN_PROGRAMS = True

    TOOLS: tuple[str, ...] = ()
    """Dotted paths of [tools](python.md#tools-from-functions) that agents can name."""


class GuardSettings(FeatureSettings):
    """Guardrails and hooks

    See [guards](guards.md). `PYTHONPATH` says where the modules are.
    """

    IN_PROGRAMS = True

    GUARDRAILS: tuple[str, ...] = ()
    """Dotted paths of guardrails that agents can choose."""
    GUARDRAIL_ATTEMPTS: Positive = 3
    """Blocked answers after which a run fails."""
    HOOKS: tuple[str, ...] = ()
    """Dotted paths of hooks, which are called in every run."""
    STUCK_REPEATS: Count = 3
    """Repetitions after which the model receives a message that it is stuck. 0: never."""


class AppSettings(FeatureSettings):
    """Features

    These are environment variables only. See [features](architecture.md#features).
    """

    DICTIONARY = ""
    WITHOUT_DJANGO = True

    DISABLED_FEATURES: tuple[str, ...] = ()
    """Features of Vel that are not installed, for example `slack`."""
    APPS: tuple[str, ...] = ()
    """Django apps of your own that add something to Vel: dotted names."""
