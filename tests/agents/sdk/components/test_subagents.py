"""The SubagentMiddleware does the same with an agent and without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.features.subagents.inputs import SpawnInput, TaskInput
from agents.models import Run, ToolCall
from agents.sdk.components.subagents import FORMS
from skills_app.models import SkillUse
from tests.agents.sdk.conftest import MakeAgent
from tests.support.runs import wait_until
from vel import (
    AgentConfig,
    AgentRegistry,
    SetupError,
    SubagentConfig,
    SubagentMiddleware,
    SubagentsMiddleware,
    scripted_model,
)

MakeAlone = Callable[..., SubagentMiddleware]


def add(first: int, second: int) -> int:
    """Add numbers."""
    return first + second


CHILD = scripted_model([{"tool_calls": [("add", {"first": 1, "second": 2})]}, "It is 3."], "adds")
OTHER = scripted_model(["I am another."], "other")
SLOW = scripted_model([{"text": "never", "delay": 600}], "slow")
SUBAGENTS = [
    SubagentConfig("writer", "Writes reports.", skills=["reporting"]),
    SubagentConfig("other", "Has its own model.", model=OTHER, tools=["ls"]),
    SubagentConfig("slow", "Never ends.", model=SLOW),
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("task", {"subagent": "writer", "task": "Add", "context": "Numbers"}),
    ("task", {"subagent": "nobody", "task": "Add"}),
    ("task", {"subagent": "writer"}),
    (
        "parallel_tasks",
        {
            "tasks": [
                {"agent": "other", "prompt": "Go"},
                {"subagent": "nobody", "task": "Add"},
                {"subagent_type": "default", "description": "Add"},
                {"subagent": "explore", "task": "Add"},
            ]
        },
    ),
    ("parallel_tasks", {"tasks": [{"task": "Add"}, {"subagent": "general"}, "Add"]}),
    ("parallel_tasks", {"tasks": []}),
    ("spawn_subagent", {"task": "Add", "agent": "nobody"}),
    ("spawn_subagent", {"task": "Add", "agent_type": "nobody"}),
    ("task", {"task": "Add", "agent_type": "nobody"}),
    ("wait_subagent", {"id": "unknown"}),
    ("wait_subagent", {"id": "unknown", "timeout": 0}),
    ("cancel_subagent", {"id": "unknown"}),
]


@pytest.fixture
def make_alone(transactional_db: None) -> Iterator[MakeAlone]:
    made: list[SubagentMiddleware] = []

    def make(**options: Any) -> SubagentMiddleware:
        given = {"default_model": CHILD, "default_tools": [add], "subagents": SUBAGENTS}
        made.append(SubagentMiddleware(**{**given, "background": True, **options}))
        return made[-1]

    yield make
    for middleware in made:
        asyncio.run(middleware.close())


def without_ids(result: Any) -> Any:
    if isinstance(result, list):
        return [without_ids(item) for item in result]
    if not isinstance(result, dict):
        return result
    return {key: without_ids(value) for key, value in result.items() if key != "id"}


def children() -> list[tuple[str, str, list[str], list[str]]]:
    """Return the name, model, tools and results of each subagent, sorted."""
    found = [
        (
            run.subagent,
            run.spec["model"],
            run.spec["tools"],
            [str(call.result_content) for call in run.tool_calls.order_by("turn", "position")],
        )
        for run in Run.objects.exclude(subagent="")
    ]
    return sorted(found)


def test_an_agent_and_a_program_get_the_same(make_agent: MakeAgent, make_alone: MakeAlone) -> None:
    alone = make_alone(sandbox_enabled=False)
    tools = {tool.name: tool for tool in alone.get_tools()}
    assert list(tools) == list(FORMS)

    async def use() -> list[Any]:
        return [await tools[name](**given) for name, given in CALLS]

    results = asyncio.run(use())
    had, loaded = children(), SkillUse.objects.count()
    assert loaded == 1
    Run.objects.all().delete()
    part = SubagentMiddleware(CHILD, [add], SUBAGENTS, background=True)
    turns = [{"tool_calls": [call]} for call in CALLS]
    agent = make_agent([*turns, "Done."], middleware=[part], include_builtin_skills=True)
    asyncio.run(agent.run("Go"))
    assert children() == had
    assert SkillUse.objects.count() == loaded
    calls = ToolCall.objects.filter(run__parent=None).order_by("turn")
    for (name, given), call, result in zip(CALLS, calls, results, strict=True):
        text = str(call.result_content)
        known = json.loads(text) if text.startswith(("{", "[")) else {"error": text}
        assert without_ids(result) == without_ids(known), (name, given)


def test_tasks_in_the_background_without_an_agent(make_alone: MakeAlone) -> None:
    alone = make_alone(sandbox_enabled=False)

    async def use() -> None:
        first, second = await alone.spawn_parallel(
            [{"task": "Add"}, {"task": "a", "agent": "slow"}]
        )
        assert (first["status"], first["agent_type"]) == ("pending", "general")
        assert (await alone.wait_subagent(first["id"]))["result"] == "It is 3."
        running = Run.objects.filter(subagent="slow", status="running")
        await asyncio.to_thread(wait_until, running.exists)
        late = await alone.wait_subagent(second["id"], 0.01)
        assert (late["status"], "result" in late) == ("running", False)
        assert "not ended yet" in late["note"]
        assert (await alone.cancel_subagent(second["id"]))["status"] == "cancelled"
        ended = await alone.wait_subagent(second["id"])
        assert (ended["status"], ended["error"]) == ("cancelled", "It was cancelled.")
        caller = asyncio.create_task(alone.task("slow", "a"))
        await asyncio.to_thread(wait_until, running.exists)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(use())
    wait_until(lambda: not Run.objects.filter(status="running").exists())


def test_a_registry_and_the_agents_own_types_are_there_without_an_agent(
    make_alone: MakeAlone,
) -> None:
    registry = AgentRegistry({"audit": AgentConfig(["ls"], description="Audits.")})
    alone = SubagentsMiddleware(registry=registry, model=OTHER, max_concurrent=3)
    assert [tool.name for tool in alone.get_tools()] == list(FORMS)
    registry.register("late", AgentConfig(description="Comes late."))
    assert list(alone.subagents) == ["general", "explore", "plan", "audit", "late"]
    assert "- late: Comes late." in alone.get_system_prompt_segment()
    for wrong, problem in (
        ({"registry": {"a": 1}}, "registry must be an AgentRegistry"),
        ({"model": OTHER, "default_model": OTHER}, "model contradicts default_model"),
        ({"background": "yes"}, "background must be True or False"),
        ({"nosuch": 1}, "SubagentMiddleware has no option 'nosuch'"),
    ):
        with pytest.raises(SetupError, match=problem):
            SubagentMiddleware(**wrong)


def test_an_error_about_an_unknown_type_names_the_types_that_can_be_used(
    make_alone: MakeAlone,
) -> None:
    alone = make_alone(subagents=[SubagentConfig("writer", "Writes reports.")])
    with pytest.raises(ValueError, match=r"There are: general, explore, plan, writer\."):
        alone._spawner.start("Write", "default")


@pytest.mark.parametrize("name", ["subagent", "subagent_type", "agent", "agent_type"])
def test_each_name_of_the_type_is_read(name: str) -> None:
    """Otherwise the general subagent would get the task."""
    given = {"task": "Look around", name: "explore"}
    assert TaskInput.model_validate(given).subagent == "explore"
    assert SpawnInput.model_validate(given).agent == "explore"
