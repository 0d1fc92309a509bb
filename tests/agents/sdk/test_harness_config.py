"""The configuration of a harness: from Python, from a dictionary, and from a file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents.models import Agent
from vel import (
    AgentConfig,
    BaseMiddleware,
    HarnessConfig,
    ModelConfig,
    SetupError,
    VelHarness,
    create_coding_harness,
    create_deep_agent,
    create_harness,
    scripted_model,
)

YAML = """\
name: desk
model: {provider: scripted, model: echo, max_tokens: 500}
maxTurns: 7
workingDirectory: work
interruptOn: {execute: true}
toolRetries: [{tool: ls, attempts: 2}]
customAgents:
  audit:
    tools: [grep]
    maxTurns: 4
    systemPromptAddition: Read everything.
options:
  onlyTools: [ls, grep, execute]
"""
DATA = {
    "name": "desk",
    "model": {"provider": "scripted", "model": "echo", "max_tokens": 500},
    "max_turns": 7,
    "working_directory": "work",
    "interrupt_on": {"execute": True},
    "tool_retries": [{"tool": "ls", "attempts": 2}],
    "custom_agents": {
        "audit": {"tools": ["grep"], "max_turns": 4, "system_prompt_addition": "Read everything."}
    },
    "options": {"only_tools": ["ls", "grep", "execute"]},
}


def test_options_of_a_harness_can_be_those_of_the_agent() -> None:
    """They have the same place as in `create_deep_agent`."""
    given = {"general_subagent": False, "read_only": True}
    config = HarnessConfig(options={**given, "options": {"subagent_depth": 0}})
    of_agent = {"general_subagent": False, "subagent_depth": 0}
    assert config.agent_config().options == of_agent
    assert config.agent_config().read_only
    assert HarnessConfig(options=config.options).agent_config().options == of_agent
    with pytest.raises(SetupError, match="options: general_subagent is given twice"):
        HarnessConfig(options={**given, "options": {"general_subagent": True}})


@pytest.mark.parametrize("make", [create_deep_agent, VelHarness])
def test_an_option_in_the_wrong_place_is_refused_with_the_right_one(make: Any) -> None:
    with pytest.raises(SetupError, match=r"general_subagent.*give it .*options"):
        make(general_subagent=False)


def test_a_file_a_dictionary_and_arguments_give_the_same_config(tmp_path: Path) -> None:
    in_yaml, in_json = tmp_path / "harness.yaml", tmp_path / "harness.json"
    in_yaml.write_text(YAML, encoding="utf-8")
    in_json.write_text(json.dumps(DATA), encoding="utf-8")
    config = HarnessConfig(**DATA)
    assert HarnessConfig.from_file(in_yaml) == HarnessConfig.from_file(in_json) == config
    assert VelHarness(DATA).config == VelHarness(**DATA).config == config
    assert create_harness({"max_turns": 3}, maxTurns=7).config.max_turns == 7
    assert create_coding_harness(None, {"maxTurns": 3}).config.max_turns == 3
    agent = config.agent_config()
    assert config.custom_agents["audit"] == AgentConfig(["grep"], 4, "", "Read everything.")
    assert (agent.name, agent.max_steps, agent.interrupt_on) == ("desk", 7, {"execute": True})
    assert agent.only_tools == ["ls", "grep", "execute"]


WRONG_FILES = {
    "no such file": None,
    "is not UTF-8": b"\xff",
    "must be a mapping": b"- 1",
    "line 2: ": b"name: a\nname: b",
    "no setting 'modle'": b"modle: 3",
    "no setting 'read_only': give it in options": b"readOnly: true",
    "^config: max_turns is given twice": b"maxTurns: 3\nmax_turns: 4",
    "^custom_agents: audit has no option 'tols'": b"customAgents: {audit: {tols: []}}",
    "^tools must be a list": b"tools: ls",
    "^interrupt_on: execute must be": b"interruptOn: {execute: maybe}",
    "^persistence_path must be": b"persistencePath: 3",
    "^name": b"name: ''",
    "^skill_dirs must be a list": b"skillDirs: ./skills",
    "^options has no option 'max_stps'": b"options: {max_stps: 3}",
}


@pytest.mark.parametrize("problem", WRONG_FILES)
def test_a_wrong_file_is_refused(problem: str, tmp_path: Path) -> None:
    file = tmp_path / "harness.yaml"
    if (content := WRONG_FILES[problem]) is not None:
        file.write_bytes(content)
    with pytest.raises(SetupError, match=f"(?i){problem}"):
        HarnessConfig.from_file(file)


def test_a_model_is_a_class_a_dictionary_or_a_name() -> None:
    given = {"provider": "scripted", "model": "echo", "max_tokens": 500}
    config = HarnessConfig(model=ModelConfig("scripted", "echo", max_tokens=500))
    assert config.agent_config().model == given
    assert HarnessConfig(model=given).agent_config().model == given
    assert "secret" not in repr(ModelConfig(api_key="secret"))
    with pytest.raises(SetupError, match=r"^model: max_tokens must be"):
        ModelConfig(max_tokens=0)


class Basket(BaseMiddleware):
    def get_system_prompt_segment(self) -> str:
        return "## Basket"


def double(number: int) -> int:
    """Double a number."""
    return number * 2


@pytest.mark.django_db(transaction=True)
def test_tools_and_middleware_reach_the_agent() -> None:
    told: list[str] = []

    def answer(messages: list[dict[str, Any]]) -> Any:
        told.append(json.dumps(messages))
        return "done" if len(messages) > 1 else {"tool_calls": [("double", {"number": 21})]}

    config = HarnessConfig(
        model=scripted_model(answer, "harness-config"),
        sandbox=False,
        tools=[double],
        middleware=[Basket()],
        name="desk",
    )

    async def use() -> None:
        async with VelHarness(config) as harness:
            assert await harness.run("Go") == "done"

    asyncio.run(use())
    assert Agent.objects.get().name == "desk"
    assert "42" in told[-1]
