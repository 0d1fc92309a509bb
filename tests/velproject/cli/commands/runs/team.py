"""A program that creates the agent `team` with subagents, from the JSON of standard input."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    import_module("django").setup()
    from agents.doors.cli.local_user import local_user
    from agents.features.subagents.models import Subagent
    from agents.models import Agent
    from agents.services.agent_definitions.actions import save_agent

    given: dict[str, Any] = json.load(sys.stdin)
    rows = [Subagent(description="Helps.", **row) for row in given.pop("subagents")]
    agent = Agent(
        name="Team",
        slug="team",
        provider="scripted",
        sandbox=False,
        builtin_skills=False,
        owner=local_user(),
    )
    for name, value in given.items():
        setattr(agent, name, value)
    save_agent(agent, related={"subagents": rows})
