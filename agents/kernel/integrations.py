"""The services that an agent may use: the values of `AgentSpec.integrations`."""

from __future__ import annotations

from dataclasses import dataclass

from agents.kernel.features import collect

AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class Integration:
    """A service that an agent's definition may name. `label` is its name for people."""

    name: str
    label: str


_BUILDER = Integration(AGENTS, "Vel: it builds agents, each approved first")


def integrations() -> tuple[Integration, ...]:
    """Return the services of the installed features (`options.INTEGRATIONS`), and Vel's own."""
    return (*(entry for _, entry in collect("options", "INTEGRATIONS")), _BUILDER)
