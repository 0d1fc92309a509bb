"""Read-only types change no file, whether they run alone or as subagents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.subagents.types import EXPLORE_PROMPT, PLAN_PROMPT
from agents.models import Run, StateFile, ToolCall, WorkspaceSnapshot
from agents.sdk.agent_registry import as_subagent
from agents.services.files.workspaces import run_location
from agents.settings import DataSettings
from tests.agents.sdk.conftest import MakeAgent
from tests.sandbox.own_directory.checkouts import contents, make_checkout
from tests.sandbox.places import reachable_directory
from vel import (
    AgentConfig,
    AgentRegistry,
    RunInterrupted,
    SubagentConfig,
    SubagentSpawner,
    SubagentStatus,
    scripted_model,
)

Calls = list[tuple[str, dict[str, Any]]]
COMMANDS = [
    "echo changed > source.txt",
    "rm source.txt; mkdir made; ln -s source.txt link; chmod 777 source.txt",
    "for d in workspace outputs shared user_uploads; do echo x > /sandbox/$d/x; done",
    "mount -o remount,rw /sandbox/workspace; echo x > source.txt",
]
ATTEMPTS: Calls = [
    *[("execute", {"command": command}) for command in COMMANDS],
    ("execute_python", {"code": "open('/sandbox/outputs/x', 'w'); open('x', 'w')"}),
    ("execute_python", {"code": "open('x', 'w')"}),
    ("write_file", {"path": "x", "content": "x"}),
    ("write_file", {"path": "/sandbox/outputs/x", "content": "x"}),
    ("edit_file", {"path": "source.txt", "old_text": "one", "new_text": "x"}),
]
SEEN: Calls = [("execute", {"command": "cat source.txt"}), ("read_file", {"path": "source.txt"})]


def turns(calls: Calls) -> list[Any]:
    return [*[{"tool_calls": [call]} for call in calls], "Done."]


@pytest.fixture
def project() -> Iterator[Path]:
    with reachable_directory() as place:
        yield make_checkout(place)


def results(run: Run) -> list[str]:
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [str(call.result_content) for call in calls]


def prompt_of(run: Run) -> str:
    return str(run.thread.epochs.latest("pk").head["system"])


def assert_nothing_changed(run: Run, project: Path) -> None:
    assert (project / "source.txt").read_text() == "one\n"
    assert not (project / "x").exists()
    written = [path for path in DataSettings.now().workspaces.rglob("x") if path.is_file()]
    assert written == []
    *attempts, shown, read = results(run)
    assert len(attempts) == len(ATTEMPTS)
    for text in attempts:
        assert "ead-only" in text, text
    assert "one" in shown
    assert "one" in read
    assert not WorkspaceSnapshot.objects.exists()


@pytest.mark.bubblewrap
def test_a_read_only_run_changes_nothing(make_agent: MakeAgent, project: Path) -> None:
    before = contents(project)
    agent = make_agent(
        turns([*ATTEMPTS, *SEEN]),
        sandbox=True,
        sandbox_working_dir=str(project),
        read_only=True,
    )
    asyncio.run(agent.run("Look"))
    run = Run.objects.get()
    assert_nothing_changed(run, project)
    assert contents(project) == before
    assert not any(word in prompt_of(run) for word in ("read-write", "Give results as files"))


@pytest.mark.bubblewrap
def test_a_directory_that_vel_keeps_is_read_only_too(make_agent: MakeAgent) -> None:
    command = "touch a /sandbox/outputs/a; echo t > /tmp/t && ls /tmp"
    calls: Calls = [("execute", {"command": command})]
    agent = make_agent(turns(calls), sandbox=True, sandbox_working_dir=None, read_only=True)
    asyncio.run(agent.run("Look"))
    [text] = results(Run.objects.get())
    assert text.count("ead-only") == 2
    assert '"stdout":"t\\n"' in text  # each call has its own /tmp


def test_without_a_sandbox_no_row_is_written(make_agent: MakeAgent) -> None:
    calls: Calls = [("write_file", {"path": "/a", "content": "x"}), ("ls", {"path": "/"})]
    agent = make_agent(turns(calls), read_only=True)
    asyncio.run(agent.run("Look"))
    assert "read-only" in results(Run.objects.get())[0]
    assert not StateFile.objects.exists()


@pytest.mark.bubblewrap
@pytest.mark.parametrize("kind", ["explore", "plan"])
def test_a_spawned_type_uses_its_prompt_and_changes_nothing(
    transactional_db: None, project: Path, kind: str
) -> None:
    own = {"explore": EXPLORE_PROMPT, "plan": PLAN_PROMPT}[kind]
    command = {"command": "echo changed > source.txt; touch made"}
    spawner = SubagentSpawner(
        AgentRegistry(),
        scripted_model(turns([("execute", command)]), kind),
        sandbox_working_dir=str(project),
        system_prompt="You work for Ada.",
        read_only=False,
    )
    before = contents(project)

    async def use() -> None:
        result = await spawner.spawn("Look", kind)
        assert result.status == SubagentStatus.COMPLETED, result.error
        await spawner.close()

    asyncio.run(use())
    run = Run.objects.get()
    assert contents(project) == before
    assert ("ead-only" if kind == "explore" else "no tool 'execute'") in results(run)[0]
    told = prompt_of(run)
    assert told.startswith(f"You work for Ada.\n\n{own}")
    for promise in ("read-write", "into /sandbox/outputs", "Give results as files"):
        assert promise not in told
    assert ("(cat /sandbox/skills" in told) == (kind == "explore")


@pytest.mark.bubblewrap
def test_a_type_that_becomes_read_only_is_so_from_the_next_task(
    transactional_db: None, project: Path
) -> None:
    registry = AgentRegistry({"mine": AgentConfig(["execute"])})
    model = scripted_model(turns([("execute", {"command": "echo more >> source.txt"})]), "mine")
    spawner = SubagentSpawner(registry, model, sandbox_working_dir=str(project))

    async def use() -> None:
        await spawner.spawn("Write", "mine")
        registry.register("mine", AgentConfig(["execute"], read_only=True))
        await spawner.spawn("Write", "mine")
        await spawner.close()

    asyncio.run(use())
    assert (project / "source.txt").read_text() == "one\nmore\n"


@pytest.mark.bubblewrap
def test_a_type_of_a_program_is_read_only_as_a_subagent(
    make_agent: MakeAgent, project: Path
) -> None:
    child = scripted_model(turns([*ATTEMPTS, *SEEN]), "child")
    look = SubagentConfig("look", "Looks.", model=child, read_only=True)
    agent = make_agent(
        turns([("task", {"subagent": "look", "task": "Look"})]),
        sandbox=True,
        sandbox_working_dir=str(project),
        subagents=[look],
    )
    asyncio.run(agent.run("Look"))
    assert_nothing_changed(Run.objects.exclude(parent=None).get(), project)


def test_a_registered_type_stays_read_only() -> None:
    explore = AgentRegistry().get("explore")
    assert explore is not None
    subagent = as_subagent("look", explore, "You work for Ada.")
    assert subagent.read_only
    assert subagent.system_prompt == f"You work for Ada.\n\n{EXPLORE_PROMPT}"


@pytest.mark.bubblewrap
def test_subagents_of_a_read_only_run_change_nothing(make_agent: MakeAgent, project: Path) -> None:
    child = scripted_model(turns([*ATTEMPTS, *SEEN]), "child")
    agent = make_agent(
        turns([("task", {"subagent": "work", "task": "Work"})]),
        sandbox=True,
        sandbox_working_dir=str(project),
        subagents=[SubagentConfig("work", "Works.", model=child)],
        read_only=True,
    )
    asyncio.run(agent.run("Look"))
    assert_nothing_changed(Run.objects.exclude(parent=None).get(), project)


@pytest.mark.bubblewrap
def test_a_resumed_or_forked_read_only_run_cannot_write(
    make_agent: MakeAgent, project: Path
) -> None:
    play = turns([("execute", {"command": "echo more >> source.txt"})])
    given = {
        "sandbox": True,
        "sandbox_working_dir": str(project),
        "interrupt_on": {"execute": True},
    }
    reader, writer = make_agent(play, read_only=True, **given), make_agent(play, **given)

    async def use() -> None:
        with pytest.raises(RunInterrupted):
            await reader.run("Look", "one")
        [_ async for _ in writer.resume("one")]

    asyncio.run(use())
    run = Run.objects.get()
    assert "ead-only" in results(run)[0]
    request = ForkRequest(files="none", message="Again")
    with prepared_fork(run, request, by=run.owner) as fork:
        complete_fork(fork)
    assert fork.run is not None
    assert run_location(fork.run).read_only
    assert (project / "source.txt").read_text() == "one\n"


@pytest.mark.bubblewrap
def test_a_session_is_read_only_while_its_agent_is(make_agent: MakeAgent, project: Path) -> None:
    play = turns([("execute", {"command": "echo more >> source.txt"})])
    given = {"sandbox": True, "sandbox_working_dir": str(project)}
    found = []
    for read_only in (True, False, True):
        agent = make_agent(play, read_only=read_only, **given)
        asyncio.run(agent.run("Write", "one"))
        run = Run.objects.latest("number")
        found.append(((project / "source.txt").read_text(), "read-write" in prompt_of(run)))
    assert found == [("one\n", False), ("one\nmore\n", True), ("one\nmore\n", False)]
