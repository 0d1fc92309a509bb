"""The fallback models of an agent, with which people can also start a run."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.fallbacks.next_model import next_spec
from agents.spec import AgentSpec


def fallback_specs(spec: AgentSpec) -> Iterator[AgentSpec]:
    """Yield `spec` with each of its fallback models, and the fallbacks after that one."""
    found = next_spec(spec)
    while found is not None:
        yield found
        found = next_spec(found)


MODEL_CHOICES = (fallback_specs,)
