"""Check the fallback models in the definition of an agent."""

from __future__ import annotations

from agents.providers.registry import PROVIDERS
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec

SCRIPTED = "scripted"


def check_fallbacks(spec: AgentSpec) -> None:
    """Raise `InvalidRequest` for an unknown provider, the scripted model, or a repeated model.

    The agent's own model is valid, and skipped: the model of an agent that names none comes from
    the settings, and may change.
    """
    known = [name for name in PROVIDERS if name != SCRIPTED]
    for index, choice in enumerate(spec.fallbacks):
        if choice.provider == SCRIPTED:
            # It would answer a person from a script.
            reason = "the scripted model cannot be a fallback"
        elif choice.provider not in known:
            reason = f"{choice.provider!r} is no provider; there are {', '.join(known)}"
        elif choice in spec.fallbacks[:index]:
            reason = f"{choice.provider} {choice.model} is named twice"
        else:
            continue
        raise InvalidRequest(f"fallbacks.{index}: {reason}.", code="invalid_agent")


SPEC_CHECKS = (check_fallbacks,)
