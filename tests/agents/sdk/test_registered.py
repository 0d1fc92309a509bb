"""Tools of the settings: every process knows them, agents select them by name."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import ImproperlyConfigured

from agents.checks.settings import check_vel_settings
from agents.checks.tools import check_tools
from agents.features.subagents.types import EXPLORE_TYPE, GENERAL_TYPE, child_spec
from agents.middleware.custom.registered import registered_tools
from agents.middleware.registry import (
    build_toolset,
    built_in_tools,
    known_tool_names,
    toolset_for,
)
from agents.models import ApprovalRequest, Run, ToolCall
from agents.policy import judge
from agents.spec import AgentSpec
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

HERE = "tests.agents.sdk.registered."
NAMES = ("colleagues", "outside", "careful")


@pytest.fixture(autouse=True)
def _registered(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "TOOLS": [HERE + name for name in NAMES]}


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec(name="", slug="", provider="", model="", **fields)


def test_an_agent_has_those_that_it_names() -> None:
    assert set(build_toolset(spec()).tools) & set(NAMES) == set()
    assert list(build_toolset(spec(tools=("ls", "outside"))).tools) == ["ls", "outside"]
    everything = build_toolset(spec(tools=("*", "outside"))).tools
    assert set(everything) == {*build_toolset(spec()).tools, "outside"}


def test_tools_follow_the_settings(settings: Any) -> None:
    agent = spec(tools=("ls", "outside"))
    assert list(toolset_for(agent).tools) == ["ls", "outside"]
    settings.VEL = {**settings.VEL, "TOOLS": []}
    assert list(toolset_for(agent).tools) == ["ls"]


def test_subagents_have_only_tools_of_their_agent() -> None:
    parent = spec(tools=("*", "outside"))
    general = build_toolset(child_spec(parent, GENERAL_TYPE)).tools
    assert "outside" in general
    assert "read_file" in general
    assert set(build_toolset(child_spec(parent, EXPLORE_TYPE)).tools) == set(
        EXPLORE_TYPE.tools or ()
    )
    left = frozenset({"read_file"})
    assert list(build_toolset(child_spec(parent, GENERAL_TYPE, left=left)).tools) == ["read_file"]


def test_external_tools_ask_unless_the_tool_or_the_agent_allows_them() -> None:
    def action(name: str, **fields: Any) -> str:
        agent = spec(tools=NAMES, **fields)
        tool = build_toolset(agent).tools[name]
        return judge(agent, name, tool.effect, {}, asks=tool.asks).action

    assert [action(name) for name in NAMES] == ["allow", "ask", "ask"]
    assert action("outside", interrupt_on={"outside": False}) == "allow"
    assert action("colleagues", interrupt_on={"colleagues": True}) == "ask"


@pytest.mark.django_db(transaction=True)
def test_a_worker_runs_them_with_the_callers_rights(tmp_path: Any) -> None:
    ada, bob = make_user(), make_user("bob")
    bob.user_permissions.add(Permission.objects.get(codename="view_user"))
    turns = [{"tool_calls": [{"name": "colleagues"}]}, {"text": "ok"}]
    make_agent(ada, model=script_file(tmp_path, turns), tools=["colleagues"], everyone=True)
    for owner in (ada, bob):
        drive_to_end(start_run(owner))
    found = {call.run.owner.username: call.result_content for call in ToolCall.objects.all()}
    assert found == {"ada": '["ada"]', "bob": '["ada","bob"]'}


@pytest.mark.django_db(transaction=True)
def test_one_that_reaches_outside_waits_for_a_person(tmp_path: Any) -> None:
    ada = make_user()
    turns = [{"tool_calls": [{"name": "outside", "input": {"text": "x"}}]}, {"text": "ok"}]
    make_agent(ada, model=script_file(tmp_path, turns), tools=["outside"])
    run = drive_to_end(start_run(ada), until=("waiting",))
    assert ApprovalRequest.objects.get().tool == "outside"
    assert Run.objects.get(pk=run.pk).wait_reason == "approval"


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["tests.nothing.here"], "cannot be used"),
        ([HERE + "outside", HERE + "outside"], "of another tool"),
    ],
)
def test_a_wrong_setting_is_an_error(settings: Any, paths: Any, problem: str) -> None:
    settings.VEL = {**settings.VEL, "TOOLS": paths}
    with pytest.raises(ImproperlyConfigured, match=problem):
        registered_tools()
    assert [error.id for error in check_tools(None)] == ["vel.E014"]


def test_a_text_instead_of_a_list_is_an_error(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "TOOLS": "tests.agents"}
    with pytest.raises(ImproperlyConfigured, match="expected a list of texts"):
        registered_tools()
    assert [error.id for error in check_vel_settings(None)] == ["vel.E008"]


def test_a_name_of_vels_own_is_an_error(settings: Any) -> None:
    assert check_tools(None) == []
    assert set(NAMES) <= known_tool_names()
    assert set(NAMES) & built_in_tools().keys() == set()
    settings.VEL = {**settings.VEL, "TOOLS": [HERE + "ls"]}
    assert "'ls' is the name" in check_tools(None)[0].msg


def test_a_name_of_an_mcp_servers_tool_is_an_error(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "TOOLS": [HERE + "mcp__plain__say"]}
    (error,) = check_tools(None)
    assert (error.id, "starts with the prefix of the tools of MCP servers" in error.msg) == (
        "vel.E014",
        True,
    )
