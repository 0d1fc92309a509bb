"""Which model a run is driven with: its agent's first, or the fallback that goes on with it.

What a run fell back to is its epoch's: a driver that takes the run over reads it there. The next
run of the thread begins with the first model again.
"""

from __future__ import annotations

from agents.engine.epoch import model_of
from agents.models import Epoch, Run
from agents.providers.base import ProviderError
from agents.providers.prices import default_thinking, is_known
from agents.settings import ModelSettings
from agents.spec import AgentSpec

DOWN = frozenset({"rate_limited", "overloaded", "server_error", "connection", "stalled"})
"""Codes of errors, after the ordinary retries, that say nothing of what was asked."""
WITHOUT_KEY = frozenset({"missing_key", "authentication", "permission"})


def is_down(error: ProviderError) -> bool:
    """Whether the model's server is the trouble, and not the request."""
    if error.code in WITHOUT_KEY:
        return ModelSettings.now().FALLBACK_WITHOUT_KEY
    # A stream that broke off is the server's; a reply that is whole and makes no sense may be ours.
    return error.code in DOWN or (error.code == "malformed_stream" and error.retryable)


def after(spec: AgentSpec) -> AgentSpec | None:
    """`spec` with the model that comes after its own, and those after that; None at the end.

    A model that is known not to think as it is told to is not told to.
    """
    for at, choice in enumerate(spec.fallbacks):
        if (choice.provider, choice.model) != (spec.provider, spec.model):
            left = spec.fallbacks[at + 1 :]
            told: dict[str, object] = {
                "provider": choice.provider,
                "model": choice.model,
                "fallbacks": left,
            }
            if is_known(choice.model) and default_thinking(choice.model) is None:
                told |= {"thinking": "", "effort": ""}
            return spec.model_copy(update=told)
    return None


def may_fall_back(spec: AgentSpec, error: ProviderError) -> bool:
    """Whether another model is to go on after `error`."""
    return bool(spec.fallbacks) and is_down(error) and after(spec) is not None


def spec_in_force(run: Run, spec: AgentSpec) -> AgentSpec:
    """`spec` with the model that the run is at, and only those that come after it."""
    last = Epoch.objects.filter(thread_id=run.thread_id).order_by("-number").first()
    if last is None or last.first_run != run.number:
        return spec
    found: AgentSpec | None = spec
    while found is not None and (found.provider, found.model) != model_of(last):
        found = after(found)
    return found or spec
