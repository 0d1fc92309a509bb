"""Middleware of a program: its tools, its part of the prompt, and a state for each session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.models import MiddlewareState, Run, Thread
from tests.agents.sdk.conftest import MakeAgent
from vel import (
    BaseMiddleware,
    FilesystemMiddleware,
    HumanInTheLoopMiddleware,
    PlanningMiddleware,
    RunFailed,
    RunInterrupted,
    SetupError,
    SubagentConfig,
    SubagentMiddleware,
)


class Counter(BaseMiddleware):
    """Counts for each session separately."""

    def __init__(self) -> None:
        self.count = 0

    def get_tools(self) -> list[Any]:
        return [self.count_up, self.count_later]

    def count_up(self) -> int:
        """Count."""
        self.count += 1
        return self.count

    async def count_later(self) -> int:
        """Count, after a moment in which others could."""
        await asyncio.sleep(0.02)
        self.count += 1
        return self.count

    def get_system_prompt_segment(self) -> str:
        return "## Counting\nCount with `count_up`."

    def get_state(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


COUNTS = [{"tool_calls": [("count_up", {}), ("count_later", {})]}, "Counted."]


def results(agent: Any, session: str) -> list[str]:
    async def collect() -> list[str]:
        events = agent.run_stream("Count", session_id=session)
        return [event.content async for event in events if event.type == "tool_result"]

    return asyncio.run(collect())


@pytest.mark.slow
def test_each_session_has_its_state_and_keeps_it(make_agent: MakeAgent) -> None:
    agent = make_agent(COUNTS, middleware=[Counter()])
    assert results(agent, "a") == ["1", "2"]
    assert results(agent, "b") == ["1", "2"]
    assert results(agent, "a") == ["3", "4"]
    assert agent.get_state("a")["middleware"] == {"counter": {"count": 4}}
    assert agent.get_state("b")["middleware"] == {"counter": {"count": 2}}
    agent.close()
    # As after a restart: another object, another instance.
    again = make_agent(COUNTS, middleware=[Counter()])
    assert results(again, "a") == ["5", "6"]
    assert MiddlewareState.objects.count() == 2
    system = Thread.objects.get(key="a").epochs.last().head["system"]  # type: ignore[union-attr]
    assert "## Counting\nCount with `count_up`." in system


@pytest.mark.slow
def test_sessions_at_the_same_time_do_not_mix(make_agent: MakeAgent) -> None:
    agent = make_agent(COUNTS, middleware=[Counter()])

    async def all_at_once() -> None:
        await asyncio.gather(*(agent.run("Count", session_id=str(n)) for n in range(6)))

    asyncio.run(all_at_once())
    states = MiddlewareState.objects.values_list("state", flat=True)
    assert list(states) == [{"count": 2}] * 6


def test_a_state_is_given_to_another_session(make_agent: MakeAgent) -> None:
    agent = make_agent(COUNTS, middleware=[Counter()])
    results(agent, "a")
    state = agent.get_state("a")
    agent.load_state({**state, "session_id": "new"})
    assert results(agent, "new") == ["3", "4"]
    agent.load_state({**state, "session_id": "new"})
    assert results(agent, "new") == ["3", "4"]
    with pytest.raises(SetupError, match="no part of a state"):
        agent.load_state({"nonsense": 1})


def test_a_state_that_is_not_json_is_an_error_of_the_call(make_agent: MakeAgent) -> None:
    class Broken(Counter):
        name = "broken"

        def get_state(self) -> dict[str, Any]:
            return {"count": object()} if self.count > 0 else {"count": 0}

    agent = make_agent(COUNTS, middleware=[Broken()])
    assert all("TypeError" in text for text in results(agent, "a"))
    assert not MiddlewareState.objects.exists()


def test_subagents_share_the_state_and_have_the_tools_that_are_theirs(
    make_agent: MakeAgent,
) -> None:
    def special() -> str:
        """Only for the specialist."""
        return "special"

    def script(messages: list[dict[str, Any]]) -> Any:
        asked = messages[0]["content"][0]["text"]
        done = any(block["type"] == "tool_use" for m in messages for block in m["content"])
        if done:
            return "Done."
        if "specialist" in asked:
            return {"tool_calls": [("special", {}), ("count_up", {})]}
        if "general" in asked:
            return {"tool_calls": [("count_up", {}), ("special", {})]}
        tasks = [
            {"subagent": "specialist", "task": "You specialist"},
            {"subagent": "general", "task": "You general one"},
        ]
        return {"tool_calls": [("count_up", {}), ("parallel_tasks", {"tasks": tasks})]}

    specialist = SubagentConfig("specialist", "Knows it", tools=[special])
    agent = make_agent(script, middleware=[Counter()], subagents=[specialist])

    async def collect() -> dict[tuple[str, str], str]:
        found = {}
        names = {}
        async for row in agent.run_stream("Go", session_id="s", mode="debug"):
            data = row["data"]
            if row["type"] == "subagent.started":
                names[data["child_run_id"]] = data["name"]
            if row["type"] == "tool.called":
                names[data["call_id"]] = data["tool"]
            if row["type"] in ("tool.completed", "tool.failed", "tool.rejected"):
                text = str(data.get("output") or data.get("message"))
                tool = data.get("tool") or names.get(data["call_id"], "")
                found[names.get(row["run_id"], "agent"), tool] = text
        return found

    found = asyncio.run(collect())
    assert found["specialist", "special"] == "special"
    assert "no tool 'count_up'" in found["specialist", "count_up"]
    assert found["general", "count_up"] == "2"
    assert "no tool 'special'" in found["general", "special"]
    assert agent.get_state("s")["middleware"] == {"counter": {"count": 2}}


def test_vels_own_components_configure_the_agent(make_agent: MakeAgent) -> None:
    own = SubagentConfig("writer", "Writes")
    agent = make_agent(
        [{"tool_calls": [("write_file", {"path": "/a", "content": "x"})]}, "ok"],
        middleware=[
            PlanningMiddleware(),
            FilesystemMiddleware(),
            HumanInTheLoopMiddleware({"write_file": True}),
            SubagentMiddleware(subagents=[own], max_concurrent=2),
        ],
    )
    with pytest.raises(RunInterrupted, match="write_file"):
        asyncio.run(agent.run("Go"))
    spec = Run.objects.get().agent_version.spec
    assert spec["interrupt_on"] == {"write_file": True}
    assert spec["sandbox"] is False
    assert [one["name"] for one in spec["subagents"]] == ["writer"]
    assert spec["max_concurrent_subagents"] == 2
    assert spec["toolkit"] == ""  # no part exists only in this program


def test_a_program_without_its_tools_is_reported(make_agent: MakeAgent) -> None:
    """A run without its toolkit is refused: it must not continue with fewer tools."""
    from agents import toolkits

    agent = make_agent(COUNTS, middleware=[Counter()])
    bind, toolkits.bind = toolkits.bind, lambda *given: None
    try:
        with pytest.raises(RunFailed, match=r"agent\.resume") as failed:
            asyncio.run(agent.run("Go"))
    finally:
        toolkits.bind = bind
    assert failed.value.code == "toolkit_missing"
