"""Checking which models go on for an agent's own when that is down."""

from __future__ import annotations

from agents.providers.registry import PROVIDERS
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec

SCRIPTED = "scripted"


def check_fallbacks(spec: AgentSpec) -> None:
    """Raises `InvalidRequest` for a fallback of no provider, named twice, or no real model.

    One that the agent has as its own model is passed over when it is due: what an agent that
    names none has comes from the settings, and may change.
    """
    known = [name for name in PROVIDERS if name != SCRIPTED]
    for at, choice in enumerate(spec.fallbacks):
        if choice.provider == SCRIPTED:
            # It would answer a person with a play, in place of a model.
            reason = "the scripted model goes on for no other"
        elif choice.provider not in known:
            reason = f"{choice.provider!r} is no provider; there are {', '.join(known)}"
        elif choice in spec.fallbacks[:at]:
            reason = f"{choice.provider} {choice.model} is named twice"
        else:
            continue
        raise InvalidRequest(f"fallbacks.{at}: {reason}.", code="invalid_agent")
