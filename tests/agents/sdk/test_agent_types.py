"""The agent types of a program: one registry, which a harness, agents and spawners use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.models import Run
from vel import (
    AgentConfig,
    AgentRegistry,
    HarnessConfig,
    SetupError,
    SubagentsMiddleware,
    VelHarness,
    create_deep_agent,
    scripted_model,
)

MakeHarness = Callable[..., VelHarness]


@pytest.fixture
def make_harness(transactional_db: None) -> Iterator[MakeHarness]:
    made: list[VelHarness] = []

    def make(turns: Any, **options: Any) -> VelHarness:
        model = scripted_model(turns, "types")
        made.append(VelHarness(HarnessConfig(model=model, sandbox=False, **options)))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


def delegating(*names: str) -> list[Any]:
    """Return the turns of an agent that gives each subagent a task."""
    tasks = [{"subagent": name, "task": f"You are {name}"} for name in names]
    return [{"tool_calls": [("parallel_tasks", {"tasks": tasks})]}, "Done."]


def children() -> dict[str, dict[str, Any]]:
    return {run.subagent: run.spec for run in Run.objects.exclude(parent=None)}


def test_types_are_replaced_and_added_at_any_time(make_harness: MakeHarness) -> None:
    names = ["default", "explore", "plan", "late"]
    harness = make_harness(delegating(*names), custom_agents={"explore": {"tools": ["ls"]}})
    asyncio.run(harness.run("Go"))
    found = children()
    assert set(found) == {"general", "explore", "plan"}
    assert (found["explore"]["tools"], found["plan"]["max_turns"]) == (["ls"], 20)
    Run.objects.all().delete()
    harness.agents.register("late", AgentConfig(["read_file"], 4, "Comes late"))
    harness.register_agent("plan", AgentConfig(["ls"], 3, "Mine", "Plan well."))
    harness.register_agent("default", AgentConfig(["write_todos"], 5))
    asyncio.run(harness.run("Go"))
    found = children()
    assert set(found) == {"general", "explore", "plan", "late"}
    assert found["late"]["tools"] == ["read_file"]
    assert found["general"]["tools"] == ["write_todos"]
    assert (found["plan"]["max_turns"], found["plan"]["read_only"]) == (3, False)
    assert found["plan"]["system_prompt"].endswith("Plan well.")
    assert harness.list_agent_types() == ["default", "explore", "plan", "late"]


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("My Agent", {}, "name: String should match"),
    ("type-1", {"tools": ["nosuch"]}, "there is no tool 'nosuch'"),
    ("type-1", {"tools": ["execute"]}, "execute needs a sandbox"),
    ("type-1", {"tools": ["execute_sql"]}, "execute_sql is not a tool"),
    ("type-1", {"tools": ["task", "ls"]}, "task is a tool of the agent that its subagents"),
    ("general-purpose", {}, "general and general-purpose are names of one type"),
]


def test_a_wrong_registration_is_refused_and_changes_nothing(make_harness: MakeHarness) -> None:
    own: dict[str, Any] = {"general": {"max_turns": 3}, **{f"type-{at}": {} for at in range(49)}}
    harness = make_harness(["Done."], custom_agents=own)
    types = harness.list_agent_types()
    for name, given, problem in WRONG:
        with pytest.raises(SetupError, match=problem):
            harness.register_agent(name, given)
    with pytest.raises(SetupError, match="50 types at most"):
        harness.agents.register("one-more", AgentConfig())
    harness.agents.register("type-7", AgentConfig(["ls"]))
    assert harness.list_agent_types() == types
    with pytest.raises(SetupError, match="there is no tool 'nosuch'"):
        harness.agent.register_subagent({"name": "a", "description": "A.", "tools": ["nosuch"]})
    assert asyncio.run(harness.run("Go")) == "Done."


def test_an_agent_uses_the_registry_that_it_is_given(make_harness: MakeHarness) -> None:
    make_harness(["unused"])
    registry = AgentRegistry({"audit": AgentConfig(["ls"])})
    model = scripted_model(delegating("audit", "late", "plan"), "given")
    own = scripted_model(["Done."], "own")
    part = SubagentsMiddleware(registry=registry, model=own, max_concurrent=3)
    for options, of_child in (({"agent_types": registry}, model), ({"middleware": [part]}, own)):
        Run.objects.all().delete()
        agent = create_deep_agent(model, sandbox=False, **options)
        agent.agent_types.register("late", AgentConfig(["grep"]))
        asyncio.run(agent.run("Go"))
        agent.close()
        found = children()
        assert set(found) == {"audit", "late", "plan"}
        assert (found["audit"]["tools"], found["late"]["tools"]) == (["ls"], ["grep"])
        assert {spec["model"] for spec in found.values()} == {of_child["model"]}
        assert agent.agent_types.list() == registry.list()
    with pytest.raises(SetupError, match="agent_types must be an AgentRegistry"):
        create_deep_agent(agent_types={"audit": AgentConfig()})
    audit = {"name": "audit", "description": "Looks."}
    with pytest.raises(SetupError, match="'audit' is also a type of agent_types"):
        create_deep_agent(agent_types=registry, subagents=[audit])
    part = SubagentsMiddleware(registry=AgentRegistry())
    with pytest.raises(SetupError, match="agent_types contradicts"):
        create_deep_agent(agent_types=registry, middleware=[part])


def test_a_harness_reports_the_end_of_background_subagents(
    make_harness: MakeHarness,
) -> None:
    slow = scripted_model([{"text": "never", "delay": 600}], "slow")
    calls = [("spawn_parallel", {"tasks": [{"task": "a", "agent": "slow"}] * 2})]
    harness = make_harness(
        [{"tool_calls": calls}, "I do not wait."],
        options={"subagents": [{"name": "slow", "description": "Slow.", "model": slow}]},
    )

    async def use() -> list[dict[str, Any]]:
        return [part async for part in harness.run_stream("Go")]

    parts = asyncio.run(use())
    told = [part["data"]["status"] for part in parts if part["type"] == "data-subagent"]
    assert told == ["queued", "queued", "cancelled", "cancelled"]
    assert parts[-1]["type"] == "finish"
