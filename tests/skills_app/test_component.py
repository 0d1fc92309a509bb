"""SkillsMiddleware: in an agent it configures the agent's skills, alone it runs the same tools."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.models import Run
from tests.agents.sdk.conftest import MakeAgent, make_agent
from tests.support.skills import write_skill
from vel import (
    DeepAgentConfig,
    SetupError,
    Skill,
    SkillsMiddleware,
    StreamMode,
    SubagentConfig,
    create_deep_agent,
    load_skill,
    scripted_model,
)

__all__ = ["make_agent"]

CODED = Skill("coded", "Counts gizmos.", "Count each gizmo twice.", triggers=("gizmo",))


def loads(*names: str) -> list[Any]:
    calls = [("load_skill", {"skill_name": name}) for name in names]
    return [{"tool_calls": [*calls, ("list_skills", {})]}, "done"]


def results(agent: Any, message: str = "go") -> list[str]:
    async def run() -> list[str]:
        events = agent.run_stream(message, mode=StreamMode.EVENTS)
        return [event.content async for event in events if event.type == "tool_result"]

    return asyncio.run(run())


def only(**options: Any) -> SkillsMiddleware:
    return SkillsMiddleware(include_builtin=False, **options)


@pytest.mark.django_db(transaction=True)
def test_registered_skills_reach_the_agent_as_they_are_alone(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    skills = only()
    skills.registry.register(CODED)
    packed = write_skill(tmp_path / "own", "beans", {"scripts/count.py": "print(1)\n"})
    skills.registry.register(load_skill(packed))
    agent = make_agent(loads("coded", "beans", "none"), middleware=[skills])
    skills.registry.register(Skill("late", "Comes late.", "Be late."))
    coded, beans, none, listed = results(agent, "my gizmo is broken")
    assert coded == skills.load_skill("coded") == skills.activate_skill(skill_name="coded")
    assert (
        none
        == skills.load_skill("none")
        == ("There is no skill 'none'. This agent has: beans, coded, late.")
    )
    assert "Files in /sandbox/skills/beans/: scripts/count.py" in beans
    assert f"Files in {packed}/: scripts/count.py" in skills.load_skill("beans")
    alone = skills.list_skills()
    assert isinstance(alone, list)
    assert sorted(str(one["name"]) for one in alone) == ["beans", "coded", "late"]
    assert '"name":"late"' in listed.replace(" ", "")
    assert Run.objects.get().opening_note == "[Vel: skills that may fit this message: coded.]"


@pytest.mark.django_db(transaction=True)
def test_without_auto_load_nothing_is_suggested(make_agent: MakeAgent) -> None:
    skills = only(auto_load=False)
    skills.registry.register(CODED)
    asyncio.run(make_agent(["done"], middleware=[skills]).run("my gizmo is broken"))
    assert Run.objects.get().opening_note == ""
    assert skills.auto_detect_skill("gizmo") is None


@pytest.mark.django_db(transaction=True)
def test_a_skill_of_a_directory_replaces_a_built_in_one(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    write_skill(tmp_path, "research", description="Researches.", body="MY OVERRIDE")
    agent = make_agent(loads("Research"), skill_dirs=[str(tmp_path)], include_builtin_skills=True)
    assert "MY OVERRIDE" in results(agent)[0]
    assert "MY OVERRIDE" in SkillsMiddleware([str(tmp_path)]).load_skill("research")


@pytest.mark.django_db(transaction=True)
def test_the_skills_of_a_subagent_must_be_skills_of_the_agent(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    skills = only()
    skills.registry.register(CODED)
    write_skill(tmp_path / "own", "beans")
    helper = SubagentConfig("helper", "Helps.", skills=["coded", "beans"])
    directories = [str(tmp_path / "own")]
    agent = make_agent(["ok"], subagents=[helper], skill_dirs=directories, middleware=[skills])
    assert asyncio.run(agent.run("Go")) == "ok"
    for unknown in ("reporting", "gone"):  # the built-in skills are left out
        with pytest.raises(SetupError, match=f"more: skills: this agent has no skill '{unknown}'"):
            agent.register_subagent({"name": "more", "description": "d", "skills": [unknown]})
    assert asyncio.run(agent.run("Go")) == "ok"
    agent.register_subagent({"name": "more", "description": "d", "skills": ["coded"]})


def test_what_an_agent_cannot_use_is_refused() -> None:
    skills = only()
    skills.registry.register(CODED)
    skills.load_skill("coded")
    with pytest.raises(SetupError, match="The skill coded is active already"):
        make(skills)
    skills.deactivate_skill("coded")
    skills.registry.register(Skill("empty", "Says nothing."))
    with pytest.raises(SetupError, match=r"The skill empty: .*no instructions"):
        make(skills)


def make(skills: SkillsMiddleware) -> None:
    create_deep_agent(model=scripted_model(["x"]), sandbox=False, middleware=[skills])


def test_instructions_in_the_system_prompt() -> None:
    skills = only(injection_mode="system_prompt")
    skills.registry.register(CODED)
    assert "gizmo twice" not in skills.get_system_prompt_segment()
    assert "gizmo twice" not in skills.load_skill("coded")
    assert "gizmo twice" in skills.get_system_prompt_segment()
    state = skills.get_state()
    assert "no longer active" in skills.deactivate_skill("coded")
    assert "gizmo twice" not in skills.get_system_prompt_segment()
    skills.load_state(state)
    assert "gizmo twice" in skills.get_system_prompt_segment()
    with pytest.raises(SetupError, match="there is no skill 'gone'"):
        skills.load_state({"active": ["gone"]})
    assert skills.get_state() == state


def test_a_required_skill_cannot_be_deactivated_first() -> None:
    skills = only()
    skills.registry.register(CODED)
    skills.registry.register(Skill("report", "Reports.", "Report.", requires=("coded",)))
    skills.load_skill("report")
    state = skills.get_state()
    refused = "coded is required by report: deactivate report first."
    assert skills.deactivate_skill("coded") == refused
    assert skills.get_state() == state == {"active": ["coded", "report"]}
    skills.load_state({"active": []})
    assert skills.get_state() == {"active": []}
    skills.load_state(state)
    assert "no longer active" in skills.deactivate_skill("report")
    assert "no longer active" in skills.deactivate_skill("coded")


def test_its_tools_take_what_those_of_an_agent_take() -> None:
    skills = only()
    skills.registry.register(replace(CODED, tags=("count",)))
    tools = {tool.name: tool for tool in skills.get_tools()}
    assert set(tools) == {"list_skills", "load_skill", "deactivate_skill"}
    assert tools["load_skill"](name="coded") == skills.load_skill("coded")
    assert tools["list_skills"](query="count gizmos") == skills.list_skills("count gizmos")
    assert "Your 1 skills do not fit" in str(skills.list_skills("bake a cake"))


def test_the_default_directory_is_left_out_where_the_agent_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(tmp_path / "skills", "beans")
    monkeypatch.chdir(tmp_path)
    assert DeepAgentConfig().skill_directories() == (str(tmp_path / "skills"),)
    with pytest.warns(UserWarning, match="the agent writes there"):
        assert DeepAgentConfig(sandbox_working_dir=".").skill_directories() == ()


@pytest.mark.django_db(transaction=True)
def test_without_a_sandbox_skills_that_need_commands_are_marked(make_agent: MakeAgent) -> None:
    agent = make_agent(loads("csv-analytics"), include_builtin_skills=True)
    text, listed = results(agent)
    assert "It requires execute, which you do not have" in text
    assert '"missing_tools":["execute"]' in listed.replace(" ", "")
