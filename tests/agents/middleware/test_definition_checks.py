"""A definition that its profile would leave out in part is refused when it is saved."""

from __future__ import annotations

from typing import Any

import pytest

from agents.features.databases.models import DatabaseConnection
from agents.features.subagents.models import Subagent
from agents.middleware.registry import build_toolset
from agents.models import Agent
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import build_spec, save_agent
from agents.services.errors import InvalidRequest
from tests.support.runs import make_agent, make_user

pytestmark = pytest.mark.django_db

SANDBOX_ONLY = {"profile": "sandbox_only", "sandbox": True}
NOT_FOR_COMMANDS = [
    ({"sandbox": False}, "sandbox"),
    ({"integrations": ["slack"]}, "integrations"),
    ({"integrations": ["gmail"]}, "integrations"),
    ({"integrations": ["calendar"]}, "integrations"),
    ({"integrations": ["agents"]}, "integrations"),
    ({"tools": ["execute_in_sandbox", "read_file"]}, "tools.1"),
    ({"tools": ["execute_in_sandbox", "execute_sql"]}, "tools.1"),
    ({"tools": ["write_todos"]}, "tools"),
    ({"tools": []}, "tools"),
    ({"interrupt_on": {"execute": True}}, "interrupt_on.execute"),
    ({"approval_rules": [{"tool": "execute", "action": "deny"}]}, "approval_rules.0.tool"),
    ({"background_subagents": True}, "background_subagents"),
    ({"subagent_depth": 2}, "subagent_depth"),
]


@pytest.mark.parametrize(("fields", "place"), NOT_FOR_COMMANDS)
def test_parts_that_a_sandbox_only_agent_would_not_get_are_refused(
    fields: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        make_agent(make_user(), **{**SANDBOX_ONLY, **fields})
    assert error.value.message.startswith(f"{place}: ")
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    ("tools", "place"),
    [
        (["execute_in_sandbox", "grep"], "subagents.ann.tools.1"),
        (["write_todos"], "subagents.ann.tools"),
        ([], "subagents.ann.tools"),
    ],
)
def test_so_are_the_tools_of_its_subagents(tools: list[str], place: str) -> None:
    agent = Agent(name="Ada", slug="ada", owner=make_user(), provider="scripted", **SANDBOX_ONLY)
    ann = Subagent(name="ann", description="Looks.", tools=tools)
    with pytest.raises(InvalidRequest) as error:
        save_agent(agent, related={"subagents": [ann]})
    assert error.value.message.startswith(f"{place}: ")


def test_so_are_its_databases() -> None:
    agent = make_agent(make_user(), **SANDBOX_ONLY)
    shop = DatabaseConnection.objects.create(name="shop", url=SecretText.seal("sqlite:////x"))
    with pytest.raises(InvalidRequest, match=r"^databases: "):
        save_agent(agent, related={"databases": [shop]})


def test_the_full_profile_has_rules_for_both_and_its_own_tools() -> None:
    owner = make_user()
    with pytest.raises(InvalidRequest, match=r"^tools\.1: .* not in the profile full"):
        make_agent(owner, tools=["ls", "execute_in_sandbox"])
    make_agent(owner, interrupt_on={"execute": True, "execute_in_sandbox": True})


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_tools_that_delegate_need_a_depth(depth: int) -> None:
    agent = Agent(name="Ada", slug="ada", owner=make_user(), subagent_depth=depth)
    ann = Subagent(name="ann", description="Looks.", tools=["ls", "task"])
    agent.tools = ["ls", "spawn_subagent"] if depth == 0 else None
    if depth == 2:
        save_agent(agent, related={"subagents": [ann]})
        return
    place = "tools.1" if depth == 0 else "subagents.ann.tools.1"
    with pytest.raises(InvalidRequest) as error:
        save_agent(agent, related={"subagents": [] if depth == 0 else [ann]})
    assert error.value.message.startswith(f"{place}: ")


def test_a_definition_that_works_is_saved() -> None:
    tools = ["execute_in_sandbox", "write_todos", "task"]
    fields = {"interrupt_on": {"execute_in_sandbox": True, "execute": False}, "tools": tools}
    rules = [{"tool": "execute*", "when": {"command": "rm .*"}, "action": "deny"}]
    agent = make_agent(make_user(), approval_rules=rules, **SANDBOX_ONLY, **fields)
    ann = Subagent(name="ann", description="Looks.", tools=["execute_in_sandbox"])
    save_agent(agent, related={"subagents": [ann]})
    assert set(build_toolset(build_spec(agent)).tools) == set(tools)
