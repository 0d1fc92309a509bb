"""The settings of guardrails and lifecycle hooks."""

from agents.kernel.settings import Count, FeatureSettings, Positive


class GuardSettings(FeatureSettings):
    """Guardrails and hooks

    See [guardrails](../guides/guardrails.md). `PYTHONPATH` must contain the modules.
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


SETTINGS = (GuardSettings,)
