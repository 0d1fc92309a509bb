"""Which model a run continues with.

The epoch of a run names its model, so a driver that takes the run over continues with the same one.
The next run of the thread starts with the agent's own model again.
"""

from __future__ import annotations

from agents.engine.prompt.epoch import model_of
from agents.features.fallbacks.options import FallbackModel, FallbackOptions
from agents.features.fallbacks.settings import FallbackSettings
from agents.models import Epoch, Run
from agents.providers.base import ProviderError
from agents.providers.prices import default_thinking, is_known, reasons
from agents.spec import AgentSpec

UNAVAILABLE = frozenset({"rate_limited", "overloaded", "server_error", "connection", "stalled"})
"""Codes of errors that remain after the retries and do not depend on the request."""
WITHOUT_KEY = frozenset({"missing_key", "unusable_key", "authentication", "permission"})


def is_unavailable(error: ProviderError) -> bool:
    """Return whether an error means that the model is unavailable, not that the request is wrong.

    An error about a missing or refused key counts with the setting `FALLBACK_WITHOUT_KEY` only.
    """
    if error.code in WITHOUT_KEY:
        return FallbackSettings.now().FALLBACK_WITHOUT_KEY
    # A stream that breaks off is an error of the server. A complete reply that cannot be read may
    # be an error of Vel.
    return error.code in UNAVAILABLE or (error.code == "malformed_stream" and error.retryable)


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
    if choice.provider != "openai" or not reasons(choice.model):
        return ""
    return "high" if effort == "max" else effort


def spec_after(spec: AgentSpec, error: ProviderError) -> AgentSpec | None:
    """Return the spec with which a run continues after `error`, or None if it cannot."""
    return next_spec(spec) if is_unavailable(error) else None


def current_spec(run: Run, spec: AgentSpec) -> AgentSpec:
    """Return `spec` with the model of the run's epoch, and the fallbacks after that."""
    last = Epoch.objects.filter(thread_id=run.thread_id).order_by("-number").first()
    if last is None or last.first_run != run.number:
        return spec
    found: AgentSpec | None = spec
    while found is not None and (found.provider, found.model) != model_of(last):
        found = next_spec(found)
    return found or spec
