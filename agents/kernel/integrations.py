"""The services in which an agent may act: the values of `AgentSpec.integrations`."""

from __future__ import annotations

from dataclasses import dataclass

from agents.kernel.features import collect

AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class Integration:
    """A service that an agent's definition may name. `label` is what a person reads."""

    name: str
    label: str


_BUILDER = Integration(AGENTS, "Vel: it builds agents, each approved first")


def integrations() -> tuple[Integration, ...]:
    """Return those of the installed features (`options.INTEGRATIONS`), and Vel's own."""
    return (*(entry for _, entry in collect("options", "INTEGRATIONS")), _BUILDER)
