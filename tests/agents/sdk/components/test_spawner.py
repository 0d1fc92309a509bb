"""The tasks of a spawner end in every case and leave no active run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.models import Run
from tests.support.runs import wait_until
from vel import AgentRegistry, SetupError, SubagentSpawner, SubagentStatus, scripted_model, tool

MakeSpawner = Callable[..., SubagentSpawner]


@tool(requires_approval=True)
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@pytest.fixture
def make_spawner(transactional_db: None) -> Iterator[MakeSpawner]:
    made: list[SubagentSpawner] = []

    def make(turns: Any, **options: Any) -> SubagentSpawner:
        model = scripted_model(turns, "spawned")
        made.append(SubagentSpawner(AgentRegistry(), model, sandbox_enabled=False, **options))
        return made[-1]

    yield make
    for spawner in made:
        asyncio.run(spawner.close())


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", None, True])
def test_a_wrong_number_of_concurrent_tasks_is_refused(
    make_spawner: MakeSpawner, number: Any
) -> None:
    with pytest.raises(SetupError, match="max_concurrent must be a whole number"):
        make_spawner(["Done."], max_concurrent=number)


def test_a_task_that_cannot_be_started_has_failed(make_spawner: MakeSpawner) -> None:
    result = asyncio.run(make_spawner(["Done."]).spawn(""))
    assert result.status == SubagentStatus.FAILED
    assert result.error
    assert result.completed_at is not None


def test_a_task_that_asks_a_person_is_cancelled(make_spawner: MakeSpawner) -> None:
    turns = [{"tool_calls": [("send", {"to": "bob"})]}, "Done."]
    spawner = make_spawner(turns, tools=[send], only_tools=None)
    result = asyncio.run(spawner.spawn("Write"))
    assert result.status == SubagentStatus.FAILED
    assert "approval of a person for send" in str(result.error)
    assert Run.objects.get().status == "cancelled"


def test_a_task_ends_with_its_cancelled_caller(make_spawner: MakeSpawner) -> None:
    spawner = make_spawner([{"text": "Slowly", "delay": 600}])

    async def use() -> None:
        caller = asyncio.create_task(spawner.spawn("Write"))
        await asyncio.to_thread(wait_until, lambda: Run.objects.filter(status="running").exists())
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        [id] = spawner.results
        assert (await spawner.wait(id)).status == SubagentStatus.CANCELLED

    asyncio.run(use())
    wait_until(lambda: not Run.objects.exclude(status="cancelled").exists(), "the end of the run")
