"""Programs without a project use the environment's settings, as the `vel` command does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.sdk.scripts import cache, place, run

__all__ = ["cache", "place"]

OWN_CODE = """
from vel import tool
from agents.features.guardrails.public import Guardrail, Hooks, allow, block, replace

class G(Guardrail):
    name = "g"
    for_every_agent = True

    def check_input(self, context, text):
        return block("a bad word") if "BADWORD" in text else allow()

    def check_output(self, context, text):
        return replace(text.replace("SECRET", "***")) if "SECRET" in text else allow()

class Audit(Hooks):
    def run_started(self, context):
        print("hook started", flush=True)

    def run_ended(self, context, status, code, message):
        print("hook ended", status, code, flush=True)

class NoGuardrail:
    pass

@tool(effect="read")
def find_order(number: int) -> str:
    "Find an order."
    return f"order {number} is on its way"
"""

PROGRAM = """
import asyncio
from vel import (
    SetupError, RunFailed, SubagentSpawner, create_deep_agent, create_harness, scripted_model,
    AgentConfig, AgentRegistry,
)

SCRIPT = [{"tool_calls": [("find_order", {"number": 17})]}, "The SECRET end."]
MODEL = scripted_model(SCRIPT)

async def say(agent, message="hello"):
    try:
        print("answer", await agent.run(message))
    except (RunFailed, SetupError) as error:
        print(type(error).__name__, error)
    await agent.aclose()
"""

AGENT = (
    PROGRAM
    + """
async def main():
    options = {"sandbox": False, "tools": ["find_order"]}
    agent = create_deep_agent(model=MODEL, **options)
    async for event in agent.run_stream("hello"):
        if event.type == "tool_result":
            print("result", event.content)
        if event.type == "end":
            print("answer", event.content)
    await say(agent, "a BADWORD")
asyncio.run(main())
"""
)

HARNESS = (
    PROGRAM
    + """
async def main():
    await say(create_harness(model=MODEL, sandbox=False))
    await say(create_harness(model=MODEL, sandbox=False), "a BADWORD")
asyncio.run(main())
"""
)

SPAWNER = (
    PROGRAM
    + """
async def main():
    registry = AgentRegistry({"clerk": AgentConfig(["find_order"])})
    spawner = SubagentSpawner(registry, MODEL, sandbox_enabled=False)
    done = await spawner.spawn("hello", "clerk")
    print("answer", done.result)
    print("called" if "order 17 is on its way" in str(done.messages) else "not called")
    print("blocked", (await spawner.spawn("a BADWORD", "clerk")).error)
    await spawner.close()
asyncio.run(main())
"""
)


@pytest.fixture
def own_code(place: Path) -> dict[str, str]:
    (place / "owncode.py").write_text(OWN_CODE)
    return {"VEL_GUARDRAILS": "owncode.G", "VEL_HOOKS": "owncode.Audit"}


@pytest.mark.slow
@pytest.mark.parametrize("program", [AGENT, HARNESS, SPAWNER], ids=["agent", "harness", "spawner"])
def test_guardrails_and_hooks_of_the_environment_are_called(
    program: str, place: Path, cache: Path, own_code: dict[str, str]
) -> None:
    fresh = program is AGENT
    out = run(program, place, cache, fresh, VEL_TOOLS="owncode.find_order", **own_code)
    assert "answer The *** end." in out
    assert "SECRET" not in out
    assert "The guardrail g blocked the message: a bad word." in out
    assert out.count("hook started") == 1
    assert "hook ended completed" in out
    assert "hook ended failed guardrail_input" in out
    if program is not HARNESS:
        assert "on its way" in out or "called\n" in out.replace("not called", "")


WRONG = (
    PROGRAM
    + """
async def main():
    await say(create_deep_agent(model=MODEL, sandbox=False))
asyncio.run(main())
"""
)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("VEL_GUARDRAILS", "nosuch.G", "nosuch.G cannot be used (ModuleNotFoundError"),
        (
            "VEL_GUARDRAILS",
            "owncode.NoGuardrail",
            "is not a subclass of Guardrail of agents.features",
        ),
        ("VEL_HOOKS", "owncode.G", "is not a subclass of Hooks of agents.features"),
        ("VEL_TOOLS", "owncode.nothing", "owncode.nothing cannot be used"),
        ("VEL_SKILLS_DIRS", "skills", "VEL_SKILLS_DIRS: expected absolute paths"),
        ("VEL_SKILLS_DIRS", "/nowhere/skills", "'/nowhere/skills' cannot be read (No such file"),
        ("VEL_PROVIDER", "opnai", "VEL_PROVIDER='opnai'"),
        ("VEL_RESERVE_BYTES", "much", "VEL_RESERVE_BYTES: expected a whole number"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error_at_the_first_use(
    place: Path, cache: Path, own_code: dict[str, str], variable: str, value: str, told: str
) -> None:
    out = run(WRONG, place, cache, **{variable: value})
    assert out.startswith("SetupError ")
    assert told in out


def test_a_project_refuses_hooks_that_cannot_be_used(
    place: Path, cache: Path, own_code: dict[str, str]
) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "velproject.settings", "VEL_HOOKS": "nosuch.Audit"}
    out = run(f"import django; django.setup()\n{WRONG}", place, cache, **settings)
    assert out.startswith("SetupError ")
    assert "nosuch.Audit cannot be used" in out


CHOICE = (
    PROGRAM
    + """
async def main():
    for model in MODELS:
        agent = create_deep_agent(model=model, sandbox=False, name=f"m{str(model)[:5]}")
        definition, owner = await agent._runner.ready()
        print(definition.choice.provider, definition.choice.model)
asyncio.run(main())
"""
)


def test_the_model_of_the_code_wins_over_the_environments(place: Path, cache: Path) -> None:
    models = (None, {"model": "claude-of-the-code"}, {"provider": "openai", "api_key": "k"})
    program = f"MODELS = {models!r}{CHOICE}"
    out = run(program, place, cache, ANTHROPIC_API_KEY="k", VEL_MODEL="claude-of-the-env")
    first, second, third = out.splitlines()
    assert first == "anthropic claude-of-the-env"
    assert second == "anthropic claude-of-the-code"
    assert third.startswith("openai ")
    assert "claude" not in third


def test_the_environment_chooses_where_the_code_does_not(place: Path, cache: Path) -> None:
    out = run(f"MODELS = [None]{CHOICE}", place, cache, VEL_PROVIDER="scripted")
    assert out.startswith("scripted ")


SKILLED = (
    PROGRAM
    + """
async def main():
    calls = [("load_skill", {"name": name}) for name in ("counting", "own")]
    script = [{"tool_calls": calls}, "Done."]
    agent = create_deep_agent(model=scripted_model(script), sandbox=False, skill_dirs=["own"])
    async for event in agent.run_stream("hello"):
        if event.type == "tool_result":
            print(event.content)
asyncio.run(main())
"""
)


@pytest.mark.slow
def test_skills_of_the_environment_come_with_those_of_the_code(place: Path, cache: Path) -> None:
    for directory, name in (("shared", "counting"), ("own", "own")):
        package = place / directory / name
        package.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: How to count {name}.\n---\n"
        (package / "SKILL.md").write_text(f"{head}Body of {name}.\n")
    out = run(SKILLED, place, cache, VEL_SKILLS_DIRS=str(place / "shared"))
    assert "Body of counting." in out
    assert "Body of own." in out
