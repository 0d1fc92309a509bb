"""Which model a run continues with.

The epoch of a run names its model, so a driver that takes the run over continues with the same one.
The next run of the thread starts with the agent's own model again.
"""

from __future__ import annotations

from agents.engine.prompt.epoch import model_of
from agents.features.fallbacks.next_model import next_spec
from agents.features.fallbacks.settings import FallbackSettings
from agents.models import Epoch, Run
from agents.providers.base import ProviderError
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
