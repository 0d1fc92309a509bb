"""An option returns to its default when the agent is made again without it."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from agents.features.guardrails.public import (
    Decision,
    GuardContext,
    Guardrail,
    HookContext,
    Hooks,
    allow,
)
from agents.models import Agent
from agents.sdk.model_config import MODEL_KEYS
from agents.services.agent_definitions.actions import build_spec
from tests.agents.sdk.conftest import MakeAgent
from vel import (
    AgentConfig,
    AgentRegistry,
    DeepAgentConfig,
    SetupError,
    SubagentConfig,
    SubagentMiddleware,
    create_deep_agent,
    scripted_model,
)


class Passes(Guardrail):
    name = "passes"

    def check_input(self, context: GuardContext, text: str) -> Decision:
        return allow()


class Watches(Hooks):
    def run_started(self, context: HookContext) -> None:
        """Do nothing."""


def double(number: int) -> int:
    """Double a number."""
    return number * 2


MODEL = scripted_model(["ok"], "test-deep-agent")
GIVEN: dict[str, Any] = {
    "model": {**MODEL, "max_tokens": 300, "thinking": "disabled", "effort": "low"},
    "tools": [double],
    "include_builtin_skills": True,
    "auto_load_skills": False,
    "databases": {"shop": "sqlite:///{directory}/shop.sqlite3"},
    "subagents": [SubagentConfig("market", "Markets", tools=["ls"], max_turns=3)],
    "agent_types": AgentRegistry({"audit": AgentConfig(["ls"])}),
    "max_concurrent_subagents": 2,
    "interrupt_on": {"write_file": True},
    "max_steps": 7,
    "system_prompt": "Be brief.",
    "only_tools": ["ls"],
    "planning": False,
    "memory": True,
    "skill_mode": "system_prompt",
    "background_subagents": True,
    "toolbox": "",
    "read_only": True,
    "output_schema": {"type": "object", "properties": {}},
    "max_tokens": 9_000,
    "max_cost": 2.5,
    "max_seconds": 60,
    "fallbacks": [{"provider": "anthropic", "model": "claude-haiku-4-5"}],
    "guardrails": [Passes, "secrets"],
    "hooks": [Watches],
    "tool_retries": [{"tool": "ls", "attempts": 2}],
    "sandbox_network": True,
    "sandbox_timeout": 99,
    "profile": "sandbox_only",
}
NOT_OF_THE_AGENT = {
    "name", "user", "persistence_path",  # these identify the agent and the database
    "skill_dirs", "sandbox_working_dir", "sandbox_allow_write", "sandbox_protect",  # of sessions
    "outputs_dir",  # of the program
    "options",  # of features: Vel's own have none
    "middleware", "program_files",  # part of the toolkit, like tools
    "checkpoint_interval",  # does nothing
    "sandbox_enabled", "database_read_only",  # without a sandbox and writes here
    "database_limits",  # of connections
}  # fmt: skip


def stored(name: str) -> dict[str, Any]:
    agent = Agent.objects.get(name=name)
    spec = build_spec(agent).model_dump(mode="json")
    return {key: value for key, value in spec.items() if key not in ("name", "slug")}


def test_every_option_is_looked_at() -> None:
    assert {one.name for one in fields(DeepAgentConfig)} == GIVEN.keys() | NOT_OF_THE_AGENT


OF_SANDBOX = {"sandbox_network", "sandbox_timeout", "profile"}


@pytest.mark.parametrize(
    "option",
    [
        pytest.param(name, marks=[pytest.mark.bubblewrap] if name in OF_SANDBOX else [])
        for name in GIVEN
    ],
)
def test_an_option_returns_to_its_default(
    make_agent: MakeAgent, option: str, tmp_path: Path, settings: Any
) -> None:
    settings.VEL = {**settings.VEL, "ANTHROPIC_API_KEY": "key-of-no-server"}  # for fallbacks
    model = {"model": MODEL}
    value = GIVEN[option]
    if option == "databases":
        sqlite3.connect(tmp_path / "shop.sqlite3").close()
        (tmp_path / "shop.sqlite3").touch()
        value = {name: url.format(directory=tmp_path) for name, url in value.items()}

    def save(name: str, **options: Any) -> dict[str, Any]:
        place = {"sandbox": True, "sandbox_working_dir": None}
        given = place if option in OF_SANDBOX else {"sandbox": False}
        agent = create_deep_agent(
            name=name, **given | {"include_builtin_skills": False, **model, **options}
        )
        try:
            definition, owner = asyncio.run(agent._runner.ready())
            definition.save(owner)
        finally:
            agent.close()
        return stored(name)

    make_agent(["ok"])  # the fixture closes the engine
    fresh = save("fresh")
    with_option = save("used", **{option: value})
    if option != "toolbox":
        assert with_option != fresh
    assert save("used") == fresh


def subagent_of(item: SubagentConfig, **options: Any) -> dict[str, Any]:
    """Return the stored subagent of an agent."""
    given = {"sandbox": False, "include_builtin_skills": False, "model": MODEL, **options}
    agent = create_deep_agent(subagents=[item], name="walk", **given)
    try:
        definition, owner = asyncio.run(agent._runner.ready())
        definition.save(owner)
    finally:
        agent.close()
    (one,) = stored("walk")["subagents"]
    assert isinstance(one, dict)
    return one


SUBAGENT: dict[str, Any] = {
    "name": "shops",
    "description": "Shops",
    "system_prompt": "Be brief.",
    "tools": ["ls"],
    "model": {"model": "another"},
    "skills": ["reporting"],
    "max_turns": 3,
    "read_only": True,
}


def test_every_option_of_a_subagent_is_looked_at() -> None:
    assert {one.name for one in fields(SubagentConfig)} == SUBAGENT.keys()


@pytest.mark.slow_cases
@pytest.mark.parametrize("option", SUBAGENT)
def test_no_option_of_a_subagent_is_dropped(make_agent: MakeAgent, option: str) -> None:
    make_agent(["ok"])
    plain = SubagentConfig("market", "Markets")
    changed = replace(plain, **{option: SUBAGENT[option]})
    skills = {"include_builtin_skills": True}
    assert subagent_of(changed, **skills) != subagent_of(plain, **skills)


MODEL_OPTIONS: dict[str, Any] = {
    "provider": "scripted",
    "model": "another",
    "api_key": "a key",
    "max_tokens": 100,
    "thinking": "disabled",
    "effort": "low",
    "temprature": 1,
}


@pytest.mark.parametrize("option", MODEL_OPTIONS)
def test_an_option_of_a_subagents_model_is_obeyed_or_refused(
    make_agent: MakeAgent, option: str
) -> None:
    make_agent(["ok"])
    assert MODEL_OPTIONS.keys() >= MODEL_KEYS
    given = {option: MODEL_OPTIONS[option]}
    if option in ("provider", "model"):
        item = SubagentConfig("market", "Markets", model=given)
        assert subagent_of(item)[option] == MODEL_OPTIONS[option]
        return
    with pytest.raises(SetupError, match=f"The subagent 'market': model has .*{option}"):
        SubagentConfig("market", "Markets", model=given)


def test_the_defaults_of_the_middleware_are_those_of_its_subagents(make_agent: MakeAgent) -> None:
    make_agent(["ok"])
    own = [SubagentConfig("market", "Markets")]
    part = SubagentMiddleware({"model": "another"}, ["ls"], own)
    agent = create_deep_agent(MODEL, middleware=[part], name="middleware", sandbox=False)
    try:
        definition, owner = asyncio.run(agent._runner.ready())
        definition.save(owner)
    finally:
        agent.close()
    found = stored("middleware")["subagents"]
    assert {one["name"]: one["tools"] for one in found} == {
        "market": ["ls"],
        "general": ["ls"],
        "explore": ["read_file", "ls", "glob", "grep"],
        "plan": ["read_file", "ls", "glob", "grep", "write_todos"],
    }
    assert {one["model"] for one in found} == {"another"}


@pytest.mark.parametrize(
    "options",
    [
        {"model": {"provider": "scripted", "max_tokens": 0}},
        {"model": {"provider": "scripted", "max_tokens": -1}},
        {"model": {"provider": "scripted", "max_tokens": "many"}},
        {"max_tokens": 0},
        {"max_cost": 0},
        {"max_seconds": 0},
    ],
)
def test_a_limit_of_zero_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="number above 0"):
        create_deep_agent(**options)
