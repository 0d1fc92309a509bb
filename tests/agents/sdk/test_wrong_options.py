"""A wrong or contradictory option is a `SetupError` that names it, before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agents.models import Agent, Run, Thread
from tests.agents.sdk.conftest import MakeAgent
from tests.agents.sdk.scripts import place
from vel import (
    AgentConfig,
    AgentRegistry,
    BaseMiddleware,
    DatabaseBackend,
    DeepAgent,
    DeepAgentConfig,
    FilesystemMiddleware,
    HarnessConfig,
    HumanInTheLoopMiddleware,
    PlanningMiddleware,
    SandboxFilesystemBackend,
    SetupError,
    SkillsMiddleware,
    SubagentConfig,
    SubagentMiddleware,
    SubagentSpawner,
    ToolSpec,
    VelHarness,
    create_coding_harness,
    create_deep_agent,
    create_harness,
    scripted_model,
)

__all__ = ["place"]

MODEL = scripted_model(["ok"], "test-deep-agent")


def double(number: int) -> int:
    """Double a number."""
    return number * 2


def undescribed(number: int) -> int:
    return number


AT_ONCE: list[tuple[str, dict[str, Any]]] = [
    ("temperature", {"temperature": 1}),
    ("did you mean max_steps", {"max_step": 1}),
    ("sandbox_enabled: give the argument sandbox", {"sandbox_enabled": False}),
    ("^name", {"name": ""}),
    ("^name", {"name": 3}),
    ("^model must be", {"model": 3}),
    ("^model: provider", {"model": {"provider": 3}}),
    ("^model: thinking", {"model": {"provider": "scripted", "thinking": "hard"}}),
    ("^model: effort", {"model": {"provider": "scripted", "effort": "huge"}}),
    ("^model: api_key", {"model": {"provider": "anthropic", "api_key": 3}}),
    ("^tools must be a list", {"tools": "ls"}),
    ("^tools must be a list", {"tools": double}),
    ("^tools: number 2 must be", {"tools": [double, 3]}),
    ("^only_tools must be a list", {"only_tools": "ls"}),
    ("^skill_dirs must be a list", {"skill_dirs": "./skills"}),
    ("^skill_dirs", {"skill_dirs": [3]}),
    ("^sandbox must be True or False", {"sandbox": "no"}),
    ("^sandbox_network must be True or False", {"sandbox_network": "yes"}),
    ("^planning must be True or False", {"planning": "no"}),
    ("^read_only must be True or False", {"read_only": 1}),
    ("^sandbox_timeout must be .* from 1 to 600, got -1", {"sandbox_timeout": -1}),
    ("^sandbox_timeout", {"sandbox_timeout": "30"}),
    ("^sandbox_timeout", {"sandbox_timeout": 601}),
    ("^sandbox_working_dir must be a path", {"sandbox_working_dir": 3}),
    ("^outputs_dir must be a path", {"outputs_dir": 3}),
    ("^persistence_path must be a path", {"persistence_path": 3}),
    ("^sandbox_allow_write must be a list", {"sandbox_allow_write": ".github"}),
    ("^sandbox_protect: number 1", {"sandbox_protect": [3]}),
    ("^max_steps must be a whole number", {"max_steps": 0}),
    ("^max_steps", {"max_steps": True}),
    ("^max_steps", {"max_steps": 10**12}),
    ("^max_concurrent_subagents", {"max_concurrent_subagents": 0}),
    ("^max_cost must be at least 0.000001", {"max_cost": 1e-9}),
    ("^max_seconds", {"max_seconds": "60"}),
    ("^system_prompt must be a text", {"system_prompt": None}),
    ("^toolbox must be a text", {"toolbox": None}),
    ("^databases must be a dictionary", {"databases": ["shop"]}),
    ("^databases: shop: the URL must be a text", {"databases": {"shop": 3}}),
    ("^interrupt_on must be a dictionary", {"interrupt_on": ["execute"]}),
    ("^interrupt_on: execute must be", {"interrupt_on": {"execute": "yes"}}),
    ("^interrupt_on: execute: allowed", {"interrupt_on": {"execute": {"allowed": []}}}),
    ("^middleware must be instances", {"middleware": [BaseMiddleware]}),
    ("^middleware must be instances", {"middleware": [3]}),
    ("^middleware must be a list", {"middleware": BaseMiddleware()}),
    ("^guardrails", {"guardrails": None}),
    ("^options must be a dictionary", {"options": ["general_subagent"]}),
    ("^output_schema must be a JSON Schema", {"output_schema": "object"}),
    ("^output_schema: ", {"output_schema": {"type": "nothing"}}),
    ("^subagents must be a list", {"subagents": "market"}),
    ("^subagents: number 1: description is missing", {"subagents": [{"name": "x"}]}),
    ("^subagents: number 1 must be a SubagentConfig", {"subagents": [None]}),
    ("^subagents: number 1 has no option 'tool'", {"subagents": [{"name": "x", "tool": []}]}),
    ("'Market Maker': name", {"subagents": [{"name": "Market Maker", "description": "d"}]}),
    ("'x': description", {"subagents": [{"name": "x", "description": ""}]}),
    ("'x': max_turns", {"subagents": [{"name": "x", "description": "d", "max_turns": 0}]}),
    ("'x': tools must be", {"subagents": [{"name": "x", "description": "d", "tools": "ls"}]}),
    ("'x': skills must be", {"subagents": [{"name": "x", "description": "d", "skills": "s"}]}),
    ("^subagents: 'x' is given twice", {"subagents": [SubagentConfig("x", "d")] * 2}),
    ("^skill_mode: .*'tool_result' or 'system_prompt', got 'bogus'", {"skill_mode": "bogus"}),
    ("^max_concurrent_subagents: .*100, got 1000", {"max_concurrent_subagents": 1000}),
    ("^max_tokens: ", {"max_tokens": 10**30}),
    ("^max_cost: ", {"max_cost": 1e9}),
    ("^profile must be full or sandbox_only", {"profile": "bogus"}),
    ("^model: there is no provider 'bogus'", {"model": {"provider": "bogus"}}),
    ("^model: max_tokens", {"model": {"provider": "scripted", "max_tokens": 10**12}}),
    (
        "'x': model: there is no provider 'bogus'",
        {"subagents": [{"name": "x", "description": "d", "model": {"provider": "bogus"}}]},
    ),
    ("^fallbacks.0: 'bogus' is no provider", {"fallbacks": [{"provider": "bogus", "model": "m"}]}),
    ("^fallbacks", {"fallbacks": [{"provider": "google", "model": str(n)} for n in range(4)]}),
    ("^system_prompt: there is no variable", {"system_prompt": "{{user.nmae}}"}),
    (
        "'x': system_prompt: there is no variable",
        {"subagents": [{"name": "x", "description": "d", "system_prompt": "{{user.nmae}}"}]},
    ),
    ("^sandbox_allow_write: '/etc' is not a path", {"sandbox_allow_write": ["/etc"]}),
    ("^sandbox_protect: '../x' is not a path", {"sandbox_protect": ["../x"]}),
    ("^options: max_turns: give the argument max_steps", {"options": {"max_turns": 3}}),
    (
        "^options: approval_rules.0.action",
        {"options": {"approval_rules": [{"tool": "execute", "action": "bogus"}]}},
    ),
    (
        "^options: approval_rules.0.when.command: invalid pattern",
        {
            "options": {
                "approval_rules": [{"tool": "x", "when": {"command": "("}, "action": "deny"}]
            }
        },
    ),
    ("^options: approvals_needed", {"options": {"approvals_needed": 3}}),
    ("^options: allowed_hosts: 'http://x'", {"options": {"allowed_hosts": ["http://x"]}}),
    ("^options: subagent_depth: ", {"options": {"subagent_depth": 99}}),
    ("^options: subagent_depth must contain JSON", {"options": {"subagent_depth": object()}}),
    ("^options: on_stuck: ", {"options": {"on_stuck": "bogus"}}),
    ("^options: model_attempts: ", {"options": {"model_attempts": 99}}),
    ("^options: compact_at: ", {"options": {"compact_at": 5}}),
    ("^options: output_repairs: ", {"options": {"output_repairs": 99}}),
    ("^max_seconds", {"max_seconds": 2**40}),
    ("^toolbox: '../x' is not a valid toolbox name", {"toolbox": "../x"}),
    ("^databases: my shop: Use letters", {"databases": {"my shop": "sqlite:////srv/shop"}}),
    ("^databases: shop: There is no driver for oracle", {"databases": {"shop": "oracle://h/d"}}),
    ("^databases: shop: It is not the URL of a database", {"databases": {"shop": "shop.sqlite3"}}),
    ("^database_limits must be a dictionary", {"database_limits": ["shop"]}),
    ("^database_limits must be a dictionary", {"database_limits": {"shop": 5}}),
    ("^database_limits: shop is not among", {"database_limits": {"shop": {"row_limit": 5}}}),
    ("^database_limits: shop: rows is not a limit", {"database_limits": {"shop": {"rows": 5}}}),
    ("^database_limits: .*row_limit must", {"database_limits": {"shop": {"row_limit": 0}}}),
    (
        "^database_limits: shop: query_timeout must be a number from 0.1 to 600, got 900",
        {"database_limits": {"shop": {"query_timeout": 900}}},
    ),
]


@pytest.mark.parametrize(("problem", "options"), AT_ONCE)
def test_a_wrong_option_is_refused_when_the_agent_is_made(
    problem: str, options: dict[str, Any]
) -> None:
    with pytest.raises(SetupError, match=problem):
        create_deep_agent(**options)


def test_the_cost_can_be_a_decimal() -> None:
    assert create_deep_agent(max_cost=Decimal("0.5")).config.max_cost == 0.5


def test_a_harness_refuses_the_wrong_value_of_an_option_when_it_is_made() -> None:
    wrong: dict[str, dict[str, Any]] = {
        "^skill_mode: .*'tool_result' or 'system_prompt', got 'bogus'": {"skill_mode": "bogus"},
        "^profile must be full or sandbox_only": {"profile": "bogus"},
    }
    for problem, options in wrong.items():
        with pytest.raises(SetupError, match=problem):
            HarnessConfig(options=options)
    with pytest.raises(SetupError, match=r"^model: there is no provider 'bogus'"):
        HarnessConfig(model={"provider": "bogus"})
    with pytest.raises(SetupError, match=r"there is no variable"):
        HarnessConfig(custom_agents={"x": {"system_prompt_addition": "{{user.nmae}}"}})


def test_an_error_names_the_field_of_the_harness(transactional_db: None, place: Path) -> None:
    audit, custom = {"name": "x", "description": "d"}, {"x": AgentConfig(["execute"])}
    with pytest.raises(SetupError, match=r"^subagents: 'x' is also a type of custom_agents"):
        HarnessConfig(custom_agents=custom, options={"subagents": [audit]})
    files = FilesystemMiddleware(SandboxFilesystemBackend(str(place / "work")))
    with pytest.raises(SetupError, match=r"^working_directory='/srv' contradicts"):
        VelHarness(working_directory="/srv", middleware=[files])
    with pytest.raises(SetupError, match=r"^sandbox_working_dir='/srv' contradicts"):
        VelHarness(options={"sandbox_working_dir": "/srv"}, middleware=[files])
    harness = VelHarness(model=MODEL, sandbox=False, custom_agents=custom)
    wrong = pytest.raises(SetupError, match=r"execute needs a sandbox: .*sandbox=False\.$")
    with closing(harness), wrong:
        asyncio.run(harness.run("Go"))


CONTRADICTIONS: list[tuple[str, dict[str, Any]]] = [
    ("^sandbox_working_dir has no effect", {"sandbox": False, "sandbox_working_dir": "/etc"}),
    ("^sandbox_network has no effect", {"sandbox": False, "sandbox_network": True}),
    ("^sandbox_timeout has no effect", {"sandbox": False, "sandbox_timeout": 5}),
    ("^toolbox has no effect", {"sandbox": False, "toolbox": "data"}),
    ("^outputs_dir has no effect", {"sandbox": False, "outputs_dir": "out"}),
    ("^sandbox_protect has no effect", {"sandbox": False, "sandbox_protect": ["x"]}),
    ("^sandbox_protect is about", {"sandbox_working_dir": None, "sandbox_protect": ["x"]}),
    ("^database_read_only=False contradicts", {"read_only": True, "database_read_only": False}),
    ("^sandbox_allow_write contradicts", {"read_only": True, "sandbox_allow_write": ["x"]}),
    ("^planning=False contradicts", {"planning": False, "middleware": [PlanningMiddleware()]}),
    (
        "^max_concurrent_subagents=2 contradicts",
        {
            "max_concurrent_subagents": 2,
            "middleware": [SubagentMiddleware(max_concurrent=3)],
        },
    ),
    (
        "^interrupt_on: ls has another value",
        {
            "interrupt_on": {"ls": False},
            "middleware": [HumanInTheLoopMiddleware({"ls": True})],
        },
    ),
]


@pytest.mark.parametrize(("problem", "options"), CONTRADICTIONS)
def test_contradictory_options_are_refused(problem: str, options: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match=problem):
        create_deep_agent(**options)


@pytest.mark.bubblewrap
def test_a_directory_of_the_file_tools_contradicts_another_place(place: Path) -> None:
    directory = place / "work"
    files = FilesystemMiddleware(SandboxFilesystemBackend(str(directory)))
    with pytest.raises(SetupError, match=r"^sandbox=False .* contradicts"):
        create_deep_agent(sandbox=False, middleware=[files])
    with pytest.raises(SetupError, match=r"^sandbox_working_dir='/srv' contradicts"):
        create_deep_agent(sandbox_working_dir="/srv", middleware=[files])
    agent = create_deep_agent(sandbox_working_dir=str(directory), middleware=[files])
    assert agent.config.sandbox_working_dir == str(directory)


def test_a_component_keeps_the_options_that_it_has_by_default() -> None:
    agent = create_deep_agent(
        include_builtin_skills=False,
        skill_mode="system_prompt",
        max_concurrent_subagents=2,
        middleware=[SkillsMiddleware(), SubagentMiddleware()],
    )
    assert agent.config.skill_mode == "system_prompt"
    assert not agent.config.include_builtin_skills
    assert agent.config.max_concurrent_subagents == 2


AT_FIRST_USE: list[tuple[str, dict[str, Any]]] = [
    ("^tools: no tool 'nothing'", {"tools": ["nothing"]}),
    ("^tools: .*undescribed has no description", {"tools": [undescribed]}),
    ("^only_tools: there is no tool 'nothing'", {"only_tools": ["nothing"]}),
    ("^only_tools: write_todos needs planning", {"planning": False, "only_tools": ["write_todos"]}),
    ("^only_tools: write_memory needs memory", {"only_tools": ["write_memory"]}),
    ("^only_tools: execute needs a sandbox", {"only_tools": ["execute"]}),
    ("^only_tools: execute_sql is not a tool", {"only_tools": ["execute_sql"]}),
    (
        "The subagent x: tools: execute needs a sandbox",
        {"subagents": [SubagentConfig("x", "d", tools=["execute"])]},
    ),
    (
        "^interrupt_on: activate_skill is another name of load_skill",
        {"interrupt_on": {"activate_skill": True, "load_skill": False}},
    ),
    ("tool 'activate_skill' has the name", {"tools": [ToolSpec("activate_skill", "d", double)]}),
    (
        "The subagent x: skills: this agent has no skill 'nosuch'",
        {"subagents": [SubagentConfig("x", "d", skills=["nosuch"])]},
    ),
    ("^options: integrations.0: ", {"options": {"integrations": ["bogus"]}}),
    ("^options: memory_saving: ", {"options": {"memory_saving": "bogus"}}),
    ("^options: nothing: there is no such option", {"options": {"nothing": 1}}),
    ("^user: there is no user nobody", {"user": "nobody"}),
    ("^subagents: default is another name", {"subagents": [SubagentConfig("default", "d")]}),
]


@pytest.mark.parametrize(("problem", "options"), AT_FIRST_USE)
def test_an_option_that_needs_the_project_is_refused_before_anything_is_stored(
    make_agent: MakeAgent, problem: str, options: dict[str, Any]
) -> None:
    agent = make_agent(["x"], **options)
    with pytest.raises(SetupError, match=problem):
        asyncio.run(agent.run("Go"))
    assert not Agent.objects.exists()
    assert not Thread.objects.exists()
    assert not Run.objects.exists()


def test_another_name_of_a_tool_is_that_of_the_tool(make_agent: MakeAgent) -> None:
    name = "activate_skill"
    agent = make_agent(
        ["ok"],
        only_tools=[name, "ls"],
        interrupt_on={name: True},
        subagents=[SubagentConfig("x", "d", tools=[name])],
    )
    asyncio.run(agent.run("Go"))
    stored = Agent.objects.get()
    assert stored.tools == ["load_skill", "ls"]
    assert stored.interrupt_on == {"load_skill": True}
    assert stored.subagents.get().tools == ["load_skill"]


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("^sandbox_working_dir: /nowhere does not exist", {"sandbox_working_dir": "/nowhere"}),
        ("^sandbox_working_dir: /etc: ", {"sandbox_working_dir": "/etc"}),
        ("^toolbox: .*nothing", {"toolbox": "nothing"}),
        ("^outputs_dir: /etc/passwd is not a directory", {"outputs_dir": "/etc/passwd"}),
    ],
)
def test_so_is_a_place_that_the_sandbox_cannot_use(
    make_agent: MakeAgent, problem: str, options: dict[str, Any]
) -> None:
    agent = make_agent(["x"], **{"sandbox": True, "sandbox_working_dir": None, **options})
    with pytest.raises(SetupError, match=problem):
        asyncio.run(agent.run("Go"))
    assert not Agent.objects.exists()


def test_a_dictionary_is_accepted_for_each_config_class(make_agent: MakeAgent) -> None:
    subagent = {"name": "market", "description": "Markets", "tools": ["ls"], "max_turns": 3}
    agent = make_agent(["ok"], subagents=[subagent])
    agent.register_subagent({"name": "tech", "description": "Technology"})
    assert asyncio.run(agent.run("Go")) == "ok"
    assert [row.name for row in Agent.objects.get().subagents.order_by("name")] == [
        "market",
        "tech",
    ]
    made = DeepAgent({"name": "walk", "max_steps": 3})
    assert isinstance(made.config, DeepAgentConfig)
    assert made.config.max_steps == 3
    kind = {"tools": ["read_file"], "max_turns": 10}
    harness = VelHarness({"custom_agents": {"audit": kind}, "max_turns": 7})
    assert harness.agents.get("audit") == AgentConfig(["read_file"], 10)
    harness.register_agent("second", kind)
    assert "second" in harness.list_agent_types()
    registry = AgentRegistry({"audit": kind})
    registry.register("more", {"description": "More"})
    assert registry.get("more") == AgentConfig(description="More")
    part = SubagentMiddleware(subagents=[subagent])
    assert part.subagents["market"] == SubagentConfig(**subagent)


def test_wrong_options_of_a_harness_are_refused() -> None:
    wrong: dict[str, dict[str, Any]] = {
        "^max_turns must be": {"max_turns": 0},
        "^working_directory must be a path": {"working_directory": 3},
        "^working_directory has no effect": {"working_directory": "/srv", "sandbox": False},
        "^sandbox must be": {"sandbox": "no"},
        "^options has no option 'max_stps'": {"options": {"max_stps": 3}},
        "^options: max_steps contradicts max_turns": {"max_turns": 3, "options": {"max_steps": 4}},
        "^custom_agents must be": {"custom_agents": ["audit"]},
        "^custom_agents: audit has no option": {"custom_agents": {"audit": {"tols": []}}},
        "^custom_agents: audit must be": {"custom_agents": {"audit": 3}},
        "no setting 'modle'": {"modle": 3},
    }
    for problem, options in wrong.items():
        with pytest.raises(SetupError, match=problem):
            create_harness(**options)
    with pytest.raises(SetupError, match=r"^working_directory has no effect"):
        create_coding_harness("/srv", sandbox=False)
    with pytest.raises(SetupError, match=r"^config must be a HarnessConfig"):
        VelHarness("coding")
    with pytest.raises(SetupError, match=r"^config has no option 'max_step'"):
        DeepAgent({"max_step": 3})


def test_wrong_options_of_agent_types_and_their_spawner_are_refused() -> None:
    with pytest.raises(SetupError, match=r"^max_turns"):
        AgentConfig(max_turns=0)
    with pytest.raises(SetupError, match=r"^tools must be a list"):
        AgentConfig(tools="ls")
    harness = VelHarness(HarnessConfig(model=MODEL))
    with pytest.raises(SetupError, match=r"^registry must be an AgentRegistry"):
        SubagentSpawner(harness)
    with pytest.raises(SetupError, match=r"^SubagentSpawner has no option 'sandbox'"):
        SubagentSpawner(sandbox=False)
    with pytest.raises(SetupError, match=r"^sandbox_timeout"):
        SubagentSpawner(sandbox_timeout=-1)
    with pytest.raises(SetupError, match=r"^max_concurrent"):
        SubagentMiddleware(max_concurrent=0)
    with pytest.raises(SetupError, match=r"^injection_mode"):
        SkillsMiddleware(injection_mode="nowhere")
    with pytest.raises(SetupError, match=r"^skill_dirs must be a list"):
        SkillsMiddleware("./skills")


@pytest.mark.parametrize(
    ("problem", "make"),
    [
        ("^connections must be a dictionary", lambda: DatabaseBackend(["shop"])),
        ("^connections: each URL", lambda: DatabaseBackend({"shop": 3})),
        ("^query_timeout must be", lambda: DatabaseBackend({}, query_timeout=-1)),
        ("^row_limit must be", lambda: DatabaseBackend({}, row_limit=0)),
        ("^read_only must be", lambda: DatabaseBackend({}, read_only="no")),
        ("^turns must be a list", lambda: scripted_model(3)),
        ("^turns: number 1 must be", lambda: scripted_model([3])),
        ("^config must be a HarnessConfig", lambda: create_harness(3)),
        ("^config must be a HarnessConfig", lambda: create_coding_harness(config=3)),
    ],
)
def test_wrong_options_of_components_are_refused(problem: str, make: Callable[[], Any]) -> None:
    with pytest.raises(SetupError, match=problem):
        make()


def test_wrong_arguments_of_a_message_are_refused(make_agent: MakeAgent) -> None:
    agent = make_agent(["x"])
    wrong: dict[str, dict[str, Any]] = {
        "^message must be a text": {"message": 3},
        "^session_id must be a text": {"message": "Go", "session_id": 3},
        "^context must be a dictionary": {"message": "Go", "context": ["Acme"]},
    }
    for problem, arguments in wrong.items():
        with pytest.raises(SetupError, match=problem):
            asyncio.run(agent.run(**arguments))
    with pytest.raises(SetupError, match=r"^load_state: middleware"):
        agent.load_state({"middleware": 3})
    assert not Agent.objects.exists()
