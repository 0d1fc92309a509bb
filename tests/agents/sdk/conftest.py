"""Agents of a program that are closed at the end of each test, with their engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.features.databases.drivers.pools import close_idle
from tests.support.runs import wait_until
from vel import DeepAgent, create_deep_agent, scripted_model

MakeAgent = Callable[..., DeepAgent]
KEPT = (
    "vel-tool-loop",
    "vel-guardrail-loop",
    "vel-hook-loop",
    "vel-middleware-loop",
    "vel-helpers",
)
"""Threads that live as long as the process."""


@pytest.fixture
def make_agent(transactional_db: None) -> Iterator[MakeAgent]:
    """`make_agent(turns, **options)`: by default without a sandbox."""
    made: list[DeepAgent] = []
    before = set(threading.enumerate())

    def make(turns: Any, **options: Any) -> DeepAgent:
        name = options.get("name", "deep-agent")
        given = {"sandbox": False, "include_builtin_skills": False, **options}
        agent = create_deep_agent(model=scripted_model(turns, f"test-{name}"), **given)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.close()
    close_idle(0)
    wait_until(lambda: not remaining_threads(before), "the end of the threads")


def remaining_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Return Vel's new threads, without those that live as long as the process."""
    return [
        thread
        for thread in set(threading.enumerate()) - before
        if thread.name.startswith("vel-") and not thread.name.startswith(KEPT)
    ]
