"""The parts of the first request that the harness adds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from agents.events.append import dump
from agents.middleware.registry import Toolset, known_tool_names, toolset_for
from agents.spec import AgentSpec
from skills_app.library.package import Head
from skills_app.library.pinned import PinnedSkill
from skills_app.runs.session import PromptSkills

MEMORY_TOOLS = frozenset({"write_memory", "read_memory", "list_memory"})
DELEGATION_TOOLS = frozenset({"task", "parallel_tasks"})
BACKGROUND_TOOLS = frozenset(
    {"spawn_subagent", "spawn_parallel", "wait_subagent", "cancel_subagent"}
)
SKILL_TOOLS = frozenset({"list_skills", "load_skill", "deactivate_skill"})
BEANS = PinnedSkill(1, "", "reviewed", Head("beans", "Counts\nbeans."))
WITH_BEANS = {"skills": PromptSkills([BEANS])}
NOON = datetime(2026, 3, 4, 12, 0)  # noqa: DTZ001  # in the thread's own time zone


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec(name="T", slug="t", provider="scripted", model="echo", **fields)


@pytest.mark.parametrize(("profile", "limit"), [("full", 6 * 1024), ("sandbox_only", 4 * 1024)])
def test_the_first_request_stays_small(profile: str, limit: int) -> None:
    agent = spec(profile=profile, subagent_depth=0)
    toolset = toolset_for(agent)
    size = len(toolset.system_prompt(agent, NOON).encode()) + len(dump(toolset.wire).encode())
    assert size <= limit


def test_the_sandbox_only_profile_has_exactly_its_tools() -> None:
    assert list(toolset_for(spec(profile="sandbox_only")).tools) == [
        "write_todos",
        "execute_in_sandbox",
        "task",
    ]


def test_the_full_profile_has_exactly_its_tools() -> None:
    files = ["ls", "read_file", "write_file", "edit_file", "glob", "grep"]
    planning = ["write_todos", "read_todos"]
    memory = ["write_memory", "read_memory", "list_memory"]
    execution = ["execute", "execute_python"]
    skills = ["list_skills", "load_skill", "deactivate_skill"]
    rest = [*memory, *skills, "task", "parallel_tasks"]
    assert list(toolset_for(spec()).tools) == [*planning, *files, *execution, *rest]
    assert list(toolset_for(spec(sandbox=False)).tools) == [*planning, *files, *rest]
    background = toolset_for(spec(background_subagents=True)).tools
    assert set(background) - set(toolset_for(spec()).tools) == BACKGROUND_TOOLS
    assert not DELEGATION_TOOLS & set(toolset_for(spec(subagent_depth=0)).tools)


@pytest.mark.parametrize("family", [MEMORY_TOOLS, SKILL_TOOLS, DELEGATION_TOOLS, BACKGROUND_TOOLS])
def test_a_family_of_tools_needs_few_tokens(family: frozenset[str]) -> None:
    background = {"background_subagents": family == BACKGROUND_TOOLS}
    whole = toolset_for(spec(**background))
    rest = spec(tools=tuple(known_tool_names() - family), **background)
    without = toolset_for(rest)

    def size(toolset: Toolset, agent: AgentSpec) -> int:
        prompt = toolset.system_prompt(agent, NOON, WITH_BEANS)
        return len(prompt.encode()) + len(dump(toolset.wire).encode())

    assert 0 < size(whole, spec(**background)) - size(without, rest) <= 1.2 * 1024


def test_a_skill_is_a_line_of_the_prompt() -> None:
    for profile in ("full", "sandbox_only"):
        agent = spec(profile=profile)
        prompt = toolset_for(agent).system_prompt(agent, NOON, WITH_BEANS)
        assert "\n- beans: Counts beans.\n" in prompt
        assert "[Using skill: name]" in prompt
        assert "## Skills" not in toolset_for(agent).system_prompt(agent, NOON)


def test_the_prompt_names_only_tools_that_the_agent_has() -> None:
    agent = spec(tools=("ls", "read_file"))
    toolset = toolset_for(agent)
    assert list(toolset.tools) == ["ls", "read_file"]
    prompt = toolset.system_prompt(agent, NOON)
    assert "write_todos" not in prompt
    assert "## Execution" not in prompt
    assert "commands" not in prompt
    assert "commands start here" in toolset_for(spec()).system_prompt(spec(), NOON)


@pytest.mark.parametrize(
    "limits",
    [
        {"read_only": True, "profile": "sandbox_only"},
        *[
            {"sandbox": sandbox, **limit}
            for sandbox in (True, False)
            for limit in ({"read_only": True}, {"tools": ("ls", "read_file", "task")})
        ],
    ],
)
@pytest.mark.parametrize("subagent", ["", "explore"])
def test_an_agent_that_changes_no_files_is_promised_no_workspace(
    limits: dict[str, Any], subagent: str
) -> None:
    agent = spec(subagent=subagent, **limits)
    prompt = toolset_for(agent).system_prompt(agent, NOON, WITH_BEANS)
    for promise in (
        "read-write",
        "into /sandbox/outputs",
        "Give results as files",
        "findings in files",
        "with the paths of your files",
        "put files for them there",
    ):
        assert promise not in prompt
    assert "into your answer" in prompt
    usual = agent.model_copy(update={"read_only": False, "tools": None})
    assert "into your answer" not in toolset_for(usual).system_prompt(usual, NOON, WITH_BEANS)


@pytest.mark.parametrize("profile", ["full", "sandbox_only"])
@pytest.mark.parametrize("read_only", [True, False])
def test_only_an_agent_with_a_person_is_instructed_to_ask(profile: str, read_only: bool) -> None:
    agent = spec(profile=profile, read_only=read_only)
    asks = "Ask when the task is unclear"
    prompt = toolset_for(agent).system_prompt(agent, NOON)
    assert asks in prompt
    assert "No questions are answered" not in prompt
    child = agent.model_copy(update={"subagent": "general"})
    prompt = toolset_for(child).system_prompt(child, NOON)
    assert asks not in prompt
    assert "No questions are answered" in prompt
    assert "report your work" not in prompt


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (("load_skill", "read_file"), "load it with load_skill"),
        (("read_file", "execute"), "(cat /sandbox/skills"),
        (("read_file", "ls"), "(read_file /sandbox/skills"),
    ],
)
def test_skills_are_read_with_a_tool_that_the_agent_has(tools: tuple[str, ...], says: str) -> None:
    agent = spec(tools=tools)
    prompt = toolset_for(agent).system_prompt(agent, NOON, WITH_BEANS)
    assert says in prompt
    assert ("scripts" in prompt) == ("execute" in tools)


@pytest.mark.parametrize("profile", ["full", "sandbox_only"])
def test_the_date_appears_once_at_the_end(profile: str) -> None:
    agent = spec(profile=profile, system_prompt="You are a careful analyst.")
    prompt = toolset_for(agent).system_prompt(agent, NOON)
    assert prompt.startswith("You are a careful analyst.")
    assert prompt.count("2026-03-04") == prompt.count("Today's date") == 1
    assert prompt.endswith("Today's date: 2026-03-04")
    assert "Authentication" not in prompt


def test_the_sandbox_comes_before_the_guidelines() -> None:
    agent = spec(profile="sandbox_only")
    prompt = toolset_for(agent).system_prompt(agent, NOON)
    assert prompt.index("## Sandbox") < prompt.index("## Guidelines")
    for directory in ("skills/", "user_uploads/", "shared/", "outputs/", "workspace/"):
        assert directory in prompt


def test_descriptions_are_short_and_schemas_are_plain() -> None:
    for profile in ("full", "sandbox_only"):
        for tool in toolset_for(spec(profile=profile)).wire:
            assert len(tool["description"]) <= 200, tool["name"]
            schema = dump(tool["input_schema"])
            assert tool["input_schema"]["type"] == "object"
            for noise in ('"title"', "$ref", "$defs", "anyOf", '"default":null'):
                assert noise not in schema, (tool["name"], noise)
