"""The definitions with which subagents run."""

from __future__ import annotations

from agents.features.subagents.types import GENERAL_TYPE, child_spec
from agents.spec import AgentSpec, SubagentSpec


def test_a_subagent_with_a_limit_needs_the_feature_that_limits_it() -> None:
    guards = {"guardrails": "guardrails"}
    parent = AgentSpec(name="Ada", slug="ada", needs=guards)
    limited = SubagentSpec(name="reader", description="Reads.", max_tokens=5_000)
    assert child_spec(parent, limited).needs == {**guards, "budgets": "max_tokens"}
    assert child_spec(parent, GENERAL_TYPE).needs == guards
