"""The to-do list of a program: that of the feature, alone and in an agent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agents.features.planning.todos import list_after
from agents.middleware.registry import toolset_for
from agents.middleware.wire_schema import wire_schema
from agents.models import Run
from agents.sdk.environment.process import engine
from agents.spec import AgentSpec
from tests.agents.sdk.conftest import MakeAgent
from vel import PlanningMiddleware, SetupError, TodoItem, TodoList

CALLS: list[dict[str, Any]] = [
    {"current_task": "Analyzing Q4 sales data", "next_steps": ["Load", "Metrics", "Report"]},
    {"current_task": "Report", "completed": ["todo_0"], "blocked": [{"id": "todo_1"}]},
    {"todos": [{"content": "keep"}, {"text": "x"}]},
    {"todos": [{"content": "a", "status": "in_progress"}] * 2},
    {"todos": [{"content": "a", "status": "finished"}]},
    {"todos": [{"content": "x" * 3_000}]},
    {"blocked": [{"reason": "no id"}]},
    {"next_steps": "abc"},
    {"completed": ["todo_7"]},
    {},
    {"todos": [{"task": "a\n- [x] fake", "status": "done", "activeForm": "doing", "notes": "n"}]},
]


def results(agent: Any, session: str) -> list[Any]:
    async def collect() -> list[Any]:
        found = []
        async for event in agent.run_stream("Go", session):
            if event.type == "tool_result":
                failed = event.metadata["is_error"]
                found.append({"error": event.content} if failed else json.loads(event.content))
        return found

    return asyncio.run(collect())


def test_alone_and_in_an_agent_the_same_calls_have_the_same_results(make_agent: MakeAgent) -> None:
    planning = PlanningMiddleware()
    turns = [{"tool_calls": [("write_todos", given)]} for given in CALLS]
    agent = make_agent([*turns, {"tool_calls": [("read_todos", {})]}, "Done."])
    alone = [planning.write_todos(**given) for given in CALLS]
    assert results(agent, "s") == [*alone, planning.read_todos()]
    kept, state = planning.get_state(), agent.get_state("s")["planning"]
    for each in (*kept["todos"], *state["todos"]):
        assert each.pop("created_at")
        assert each.pop("updated_at")
        assert each.pop("completed_at")
    assert kept == state
    tools = toolset_for(AgentSpec(name="", slug="")).tools
    for tool in planning.get_tools():
        other = tools[tool.name]
        assert tool.description == other.description
        assert wire_schema(tool.signature.model) == wire_schema(other.input_model)


def test_an_agent_has_the_list_that_was_given_and_the_program_sees_its_changes(
    make_agent: MakeAgent,
) -> None:
    planning = PlanningMiddleware()
    planning.todo_list.add("given before")
    turns = [
        {"tool_calls": [("read_todos", {})]},
        {"tool_calls": [("write_todos", {"completed": ["todo_0"], "next_steps": ["more"]})]},
        "Done.",
    ]
    agent = make_agent(turns, middleware=[planning])
    shown, _ = results(agent, "one")
    assert [item["content"] for item in shown["todos"]] == ["given before"]
    assert planning.get_state() == agent.get_state("one")["planning"]
    assert [item.status for item in planning.todo_list.items] == ["completed", "pending"]
    # It is the list of that session: changes here reach the agent, and no other session.
    planning.todo_list.block("todo_1", "no key")
    assert planning.write_todos(current_task="Waiting")["counts"]["blocked"] == 1
    state = agent.get_state("one")["planning"]
    assert (state["current_task"], state["todos"][1]["note"]) == ("Waiting", "no key")
    shown, _ = results(agent, "two")
    assert [item["content"] for item in shown["todos"]] == ["given before"]
    assert len(agent.get_state("one")["planning"]["todos"]) == 2
    begun = Run.objects.get(thread__key="one")
    contents = [[todo["content"] for todo in list_after(begun, n)["todos"]] for n in (1, 2)]
    assert contents == [["given before"], ["given before", "more"]], "the lists of forks"
    last = planning.get_state()
    agent.close()
    assert planning.get_state() == last
    assert not engine.is_running


def test_a_state_of_the_agent_is_one_of_the_component(make_agent: MakeAgent) -> None:
    planning = PlanningMiddleware()
    planning.write_todos("Sell", ["Load", "Chart"])
    agent = make_agent(["Done."])
    agent.load_state({"session_id": "s", "planning": planning.get_state()})
    asyncio.run(agent.run("Go", "s"))
    other = PlanningMiddleware()
    other.load_state(agent.get_state("s")["planning"])
    assert other.todo_list == planning.todo_list


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "todos is missing"),
        (None, "todos is missing"),
        ({"items": []}, "todos is missing"),
        ({"todos": "abc"}, "must be a list"),
        ({"todos": [], "more": 1}, "no field 'more'"),
        ({"todos": [{"status": "pending"}]}, "Item 1 has no content"),
        ({"todos": [{"content": "a", "contnet": "b"}]}, "a field 'contnet'"),
        ({"todos": [{"content": "a", "status": "weird"}]}, "status 'weird'"),
        ({"todos": [{"content": "a", "status": []}]}, "status"),
        ({"todos": [{"content": "a", "note": None}]}, "note must be a text"),
        ({"todos": [{"content": "a", "created_at": "today"}]}, "created_at must be a time"),
        ({"todos": [{"content": "a", "created_at": "2026-01-01"}]}, "with its zone"),
        ({"todos": [{"content": "a", "updated_at": 5}]}, "updated_at must be a time"),
        ({"todos": [{"content": "a\0"}]}, "NUL"),
        ({"todos": [], "current_task": 5}, "current_task must be a text"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(state: Any, message: str) -> None:
    planning = PlanningMiddleware()
    planning.write_todos("Sell", ["Load"])
    before = planning.get_state()
    with pytest.raises(SetupError, match=message):
        planning.load_state(state)
    assert planning.get_state() == before


def test_wrong_items_are_refused() -> None:
    todos = TodoList()
    for wrong in ("", None, "x" * 3_000):
        with pytest.raises(SetupError, match="Item 1"):
            todos.add(wrong)
    with pytest.raises(SetupError, match="TodoItem"):
        TodoList(["Load"])
    with pytest.raises(SetupError, match="status 'weird'"):
        TodoList([TodoItem("a", "Load", "weird")])
    assert todos == TodoList()


def test_an_item_that_a_program_holds_shows_its_changes() -> None:
    item = TodoItem("a", task="Load")
    todos = TodoList([item], "Sell")
    assert item.id == "todo_0"
    todos.items.append(TodoItem("b", "Chart"))
    assert todos.complete("todo_1", "drawn")
    assert todos.block("todo_0", "no data")
    todos.add("Report")
    assert (item.status, item.notes) == ("blocked", "no data")
    assert [one.task for one in todos.get_completed()] == ["Chart"]
    assert todos.to_markdown().splitlines()[3:] == [
        "## Todo List", "- [!] Load", "  - no data", "- [x] Chart", "  - drawn", "- [ ] Report",
    ]  # fmt: skip
