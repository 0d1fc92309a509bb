"""Scripts of a program: each has its own name, unless the program gives one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents.sdk.environment.process import engine
from tests.agents.sdk.scripts import cache, place, run
from vel import SetupError, SubagentConfig, create_deep_agent, scripted_model

__all__ = ["cache", "place"]

FIRST_NAME = """
from vel import scripted_model
print(*(scripted_model(["x"])["model"] for _ in range(3)))
"""


@pytest.mark.django_db(transaction=True)
def test_scripts_without_a_name_do_not_replace_each_other() -> None:
    child = scripted_model(["I am the child."])
    calls = [("task", {"subagent": "helper", "task": "Who are you?"})]
    parent = scripted_model([{"tool_calls": calls}, "I am the parent."])
    agent = create_deep_agent(
        parent, subagents=[SubagentConfig("helper", "Helps", model=child)], sandbox=False
    )

    async def use() -> list[str]:
        async with agent:
            events = [event async for event in agent.run_stream("Go", "s")]
        return [event.content for event in events if event.type in ("tool_result", "end")]

    of_child, answer = asyncio.run(use())
    assert "I am the child." in of_child
    assert answer == "I am the parent."
    assert not engine.is_running


@pytest.mark.slow
def test_names_are_the_same_in_each_process(place: Path, cache: Path) -> None:
    assert run(FIRST_NAME, place, cache) == "program program-2 program-3\n"


def test_a_name_that_is_given_is_used() -> None:
    assert scripted_model(["x"], "mine")["model"] == "mine"
    assert scripted_model(["x"], name="mine")["model"] == "mine"


@pytest.mark.parametrize("given", [("turns.json",), (["x"], "file:turns.json")])
def test_a_path_is_refused_with_the_way_to_play_a_file(given: tuple[str, ...]) -> None:
    with pytest.raises(SetupError, match=r'"model": "file:/path"'):
        scripted_model(*given)
