"""Which tool calls wait for a person."""

from __future__ import annotations

from agents.models import Effect
from agents.spec import AgentSpec, InterruptRule


def needs_approval(spec: AgentSpec, tool: str, effect: str) -> bool:
    """By the agent's `interrupt_on`; where it is silent, calls that reach outside ask."""
    rule = spec.interrupt_on.get(tool)
    if rule is None:
        return effect == Effect.EXTERNAL
    return rule is not False


def ask_rule(spec: AgentSpec, tool: str) -> InterruptRule:
    """Which decisions a person may take on a call of `tool`."""
    rule = spec.interrupt_on.get(tool)
    return rule if isinstance(rule, InterruptRule) else InterruptRule()
