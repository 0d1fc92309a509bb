"""The definition of an agent with each of its fallback models."""

from __future__ import annotations

from agents.features.fallbacks.options import FallbackModel, FallbackOptions
from agents.providers.prices import default_thinking, is_known, reasons
from agents.spec import AgentSpec


def next_spec(spec: AgentSpec) -> AgentSpec | None:
    """Return `spec` with its next model and the fallbacks after that, or None after the last one.

    `thinking` is removed for a known model without a default for thinking, and `effort` for a
    known model that does not accept it.
    """
    fallbacks = spec.option(FallbackOptions).fallbacks
    for index, choice in enumerate(fallbacks):
        if (choice.provider, choice.model) != (spec.provider, spec.model):
            changes: dict[str, object] = {
                "provider": choice.provider,
                "model": choice.model,
                "fallbacks": [each.model_dump() for each in fallbacks[index + 1 :]],
            }
            if is_known(choice.model) and default_thinking(choice.model) is None:
                changes |= {"thinking": "", "effort": _effort(choice, spec.effort)}
            return spec.model_copy(update=changes)
    return None


def _effort(choice: FallbackModel, effort: str) -> str:
    """Return the effort for a known model without a default for thinking.

    OpenAI's models that reason accept it, except for `max`, and with tools only by the Responses
    API.
    """
    if choice.provider not in ("openai", "openai-responses") or not reasons(choice.model):
        return ""
    return "high" if effort == "max" else effort
