"""Agents of a program that work with commands in the sandbox only."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.models import Agent, Run, ToolCall
from tests.agents.sdk.conftest import MakeAgent
from vel import SetupError, SubagentConfig, VelHarness, create_deep_agent

PLACE: dict[str, Any] = {"profile": "sandbox_only", "sandbox": True, "sandbox_working_dir": None}


def find_order(number: int) -> str:
    """Find an order."""
    return f"order {number}"


@pytest.mark.bubblewrap
def test_it_has_commands_its_plan_subagents_and_the_tools_of_the_program(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    write = {"command": "echo 42 > /sandbox/outputs/answer.txt && cat /sandbox/outputs/answer.txt"}
    turns = [{"tool_calls": [("execute_in_sandbox", write)]}, "Done."]
    outputs = tmp_path / "outputs"
    agent = make_agent(turns, tools=[find_order], outputs_dir=outputs, **PLACE)
    assert asyncio.run(agent.run("Go")) == "Done."
    call = ToolCall.objects.get()
    assert (call.tool, call.status) == ("execute_in_sandbox", "succeeded")
    (file,) = asyncio.run(agent.files())
    assert Path(str(file.host_path)).read_text() == "42\n"
    stored = Agent.objects.get()
    assert stored.profile == "sandbox_only"
    assert stored.tools == ["execute_in_sandbox", "task", "write_todos", "find_order"]


@pytest.mark.bubblewrap
def test_its_subagents_have_commands(make_agent: MakeAgent) -> None:
    def turn(messages: list[Any]) -> Any:
        told = str(messages[0]["content"])
        if "look" in told and len(messages) == 1:
            return {"tool_calls": [("execute_in_sandbox", {"command": "echo seen"})]}
        if "look" not in told and len(messages) == 1:
            return {"tool_calls": [("task", {"subagent": "eye", "task": "look"})]}
        return "Done."

    eye = SubagentConfig("eye", "Looks.", tools=["execute_in_sandbox"])
    agent = make_agent(turn, subagents=[eye], **PLACE)
    assert asyncio.run(agent.run("Go")) == "Done."
    child = Run.objects.exclude(parent=None).get()
    assert ToolCall.objects.get(run=child).tool == "execute_in_sandbox"


CONTRADICTIONS: list[tuple[str, dict[str, Any]]] = [
    ("^profile must be full or sandbox_only", {"profile": "sandbox"}),
    ("^sandbox=False contradicts", {"sandbox": False, "sandbox_working_dir": None}),
    ("^databases contradicts", {"databases": {"shop": "sqlite:///shop.sqlite3"}}),
    ("^memory=True contradicts", {"memory": True}),
    ("^background_subagents=True contradicts", {"background_subagents": True}),
]


@pytest.mark.parametrize(("problem", "options"), CONTRADICTIONS)
def test_unsupported_parts_are_refused_immediately(problem: str, options: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match=problem):
        create_deep_agent(**{**PLACE, **options})


AT_FIRST_USE: list[tuple[str, dict[str, Any]]] = [
    ("^only_tools: read_file is not a tool", {"only_tools": ["execute_in_sandbox", "read_file"]}),
    ("^only_tools: execute_in_sandbox is missing", {"only_tools": ["write_todos"]}),
    ("^interrupt_on: execute: ", {"interrupt_on": {"execute": True}}),
    ("^options: subagent_depth: ", {"options": {"subagent_depth": 2}}),
    ("^options: integrations: ", {"options": {"integrations": ["slack"]}}),
    ("^The subagent x: tools: grep", {"subagents": [SubagentConfig("x", "d", tools=["grep"])]}),
    (
        "^subagents: x.tools: execute_in_sandbox is missing",
        {"subagents": [SubagentConfig("x", "d", tools=[find_order])]},
    ),
]


@pytest.mark.parametrize(("problem", "options"), AT_FIRST_USE)
def test_unsupported_names_are_refused_before_storing(
    make_agent: MakeAgent, problem: str, options: dict[str, Any]
) -> None:
    agent = make_agent(["x"], **PLACE, **options)
    with pytest.raises(SetupError, match=problem):
        asyncio.run(agent.run("Go"))
    assert not Agent.objects.exists()


def test_the_full_profile_has_no_tool_of_this_one(make_agent: MakeAgent) -> None:
    agent = make_agent(["x"], only_tools=["execute_in_sandbox"])
    with pytest.raises(SetupError, match=r"^only_tools: execute_in_sandbox"):
        asyncio.run(agent.run("Go"))


def test_a_harness_has_the_profile_too() -> None:
    harness = VelHarness({"options": {"profile": "sandbox_only"}})
    assert harness.agent.config.profile == "sandbox_only"
