"""The state of a session: read, restored exactly, or refused before anything is stored."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.middleware.custom import state as middleware_state
from agents.services.errors import Conflict
from skills_app.models import SkillUse
from tests.agents.sdk.conftest import MakeAgent
from tests.agents.sdk.scripts import cache, place, run
from tests.support.skills import write_skill
from vel import BaseMiddleware, DeepAgent, PlanningMiddleware, RunInterrupted, SetupError

__all__ = ["cache", "place"]

SKILLS = ("beans", "soup", "bread")
text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
content = text.filter(str.strip)
moment = st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat())
scalar = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text
value = st.recursive(
    scalar, lambda each: st.lists(each, max_size=3) | st.dictionaries(text, each, max_size=3)
)


class Basket(BaseMiddleware):
    """Its state is any dictionary with `items`."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"items": []}

    def get_tools(self) -> list[Any]:
        return [self.show]

    def show(self) -> str:
        """Show the state."""
        return json.dumps(self.state)

    def get_state(self) -> dict[str, Any]:
        return self.state

    def load_state(self, state: dict[str, Any]) -> None:
        self.state = {**state, "items": state["items"]}


@st.composite
def todo(draw: st.DrawFn, number: int) -> dict[str, Any]:
    status = draw(st.sampled_from(["pending", "completed", "blocked"]))
    return {
        "id": f"todo_{number}",
        "content": draw(content),
        "status": status,
        "active_form": draw(text),
        "note": draw(text),
        "created_at": draw(moment),
        "updated_at": draw(moment),
        "completed_at": draw(moment) if status == "completed" else None,
    }


@st.composite
def states(draw: st.DrawFn) -> dict[str, Any]:
    """Return a state as `get_state` returns it, without `session_id`."""
    todos = [draw(todo(number)) for number in range(draw(st.integers(0, 3)))]
    names = draw(st.lists(st.sampled_from("abc"), unique=True))
    files = {
        f"/{draw(st.sampled_from(['d', 'e/f']))}/{name}": draw(st.binary(max_size=9))
        for name in names
    }
    basket = {"items": draw(value), **draw(st.dictionaries(content, value, max_size=2))}
    return {
        "planning": {"current_task": draw(text), "todos": todos},
        "skills": {"loaded_skills": draw(st.permutations(SKILLS))[: draw(st.integers(0, 3))]},
        "middleware": draw(st.sampled_from([{}, {"basket": basket}, {"other": basket}])),
        "filesystem": {
            "files": {path: base64.b64encode(data).decode() for path, data in files.items()}
        },
    }


@pytest.fixture
def agent(make_agent: MakeAgent, tmp_path: Path) -> DeepAgent:
    return desk(make_agent, tmp_path)


def desk(make_agent: MakeAgent, directory: Path, turns: Any = ("ok",), **options: Any) -> DeepAgent:
    for name in SKILLS:
        write_skill(directory / "skills", name)
    given = {"middleware": [Basket()], "skill_dirs": [str(directory / "skills")], **options}
    return make_agent(list(turns), **given)


def seen(agent: DeepAgent, session: str) -> dict[str, Any]:
    """Return the state without its session, which is JSON."""
    state = agent.get_state(session)
    assert state.pop("session_id") == session
    return dict(json.loads(json.dumps(state)))


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_session_has_exactly_the_state_that_was_loaded(agent: DeepAgent) -> None:
    asyncio.run(agent.run("Go", "old"))
    number = 0

    @settings(
        max_examples=20,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(states(), states())
    def restores(first: dict[str, Any], second: dict[str, Any]) -> None:
        nonlocal number
        number += 1
        for state in (first, second):
            agent.load_state({"session_id": "old", **state})
            assert seen(agent, "old") == state
        agent.load_state({"session_id": "old", **first}, f"new {number}")
        assert seen(agent, f"new {number}") == first, "before it begins"
        assert seen(agent, "old") == second, "another session"

    restores()
    last = seen(agent, f"new {number}")
    asyncio.run(agent.run("Go", f"new {number}"))
    assert seen(agent, f"new {number}") == last, "its first run changes nothing"
    asyncio.run(agent.run("Go", "old"))


GOOD: dict[str, Any] = {
    "planning": {"current_task": "Cook", "todos": [{"content": "Buy"}]},
    "skills": {"loaded_skills": ["soup"]},
    "middleware": {"basket": {"items": [1]}},
    "filesystem": {"files": {"/a": "eA=="}},
}
BAD: list[tuple[Any, str]] = [
    (None, "must be a dictionary"),
    ("x", "must be a dictionary"),
    ({"nonsense": 1}, "'nonsense' is no part"),
    ({"middleware": {"basket": {"items": {1, 2}}}}, "JSON data only"),
    ({"middleware": {"basket": {"items": float("nan")}}}, "JSON data only"),
    ({"middleware": {"basket": {"items": "\0"}}}, "NUL"),
    ({"session_id": 5}, "session_id must be"),
    ({"planning": {}}, "planning: todos is missing"),
    ({"planning": {"todos": [{"content": "a", "status": "weird"}]}}, "planning: .*'weird'"),
    ({"skills": ["soup"]}, "skills: give"),
    ({"skills": {"loaded_skills": "soup"}}, "skills: .*list of names"),
    ({"skills": {"loaded_skills": ["soup", "soup"]}}, "skills: .*twice"),
    ({"skills": {"loaded_skills": ["cake"]}}, "skills: .*no skill 'cake'"),
    ({"middleware": []}, "middleware must be"),
    ({"middleware": {"basket": 5}}, "middleware: basket must be"),
    ({"middleware": {"basket": {"thing": 1}}}, "basket cannot load its state: KeyError"),
    ({"middleware": {"x" * 101: {}}}, "is no name"),
    ({"middleware": {"other": {"items": "x" * 1_000_001}}}, "more than 1,000,000 bytes"),
    ({"filesystem": {"/a": "eA=="}}, "filesystem must be"),
    ({"filesystem": {"files": {"/a": "%%"}}}, "'/a' is no base64"),
    ({"filesystem": {"files": {"/a": 5}}}, "'/a' is no base64"),
    ({"filesystem": {"files": {"a": ""}}}, "no absolute path"),
    ({"filesystem": {"files": {"/a/../b": ""}}}, "no absolute path"),
    ({"filesystem": {"files": {"/a": "", "/a/b": ""}}}, "'/a' is a file"),
]


def test_a_state_that_cannot_be_restored_is_refused_and_nothing_is_stored(agent: DeepAgent) -> None:
    agent.load_state({"session_id": "s", **GOOD})
    before = seen(agent, "s")
    for begun in (False, True):
        if begun:
            asyncio.run(agent.run("Go", "s"))
        for state, message in BAD:
            whole = {**GOOD, "session_id": "s", **state} if isinstance(state, dict) else state
            with pytest.raises(SetupError, match=f"load_state: .*{message}"):
                agent.load_state(whole)
            assert seen(agent, "s") == before, message
    assert agent.last_session_id == "s"
    for call in (agent.get_state, lambda wrong: agent.load_state(GOOD, wrong)):
        with pytest.raises(SetupError, match="session_id must be"):
            call(5)


def test_a_part_that_the_state_does_not_have_is_emptied(agent: DeepAgent) -> None:
    asyncio.run(agent.run("Go", "s"))
    agent.load_state(GOOD)
    asyncio.run(agent.run("Go", "s"))
    agent.load_state({"session_id": "s"})
    assert seen(agent, "s") == seen(agent, "unknown")
    assert seen(agent, "s")["filesystem"] == {"files": {}}
    # Forks read the ledger.
    assert list(SkillUse.objects.values_list("kind", flat=True)) == ["loaded", "deactivated"]


def test_only_the_named_session_gets_the_state(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = desk(make_agent, tmp_path)
    asyncio.run(agent.run("Go", "begun"))
    agent.load_state({**GOOD, "session_id": "A"})
    asyncio.run(agent.run("Go", "begun"))
    asyncio.run(agent.run("Go", "B"))
    empty = seen(agent, "unknown")
    assert seen(agent, "B") == seen(agent, "begun") == empty
    # A message that is refused does not use up the state.
    with pytest.raises(Exception, match="empty"):
        asyncio.run(agent.run(" ", "A"))
    asyncio.run(agent.run("Go", "A"))
    assert seen(agent, "A")["planning"]["current_task"] == "Cook"
    other = desk(make_agent, tmp_path)
    other.load_state(GOOD)
    asyncio.run(other.run("Go", "begun"))
    assert seen(other, "begun") == empty
    asyncio.run(other.run("Go"))
    assert seen(other, str(other.last_session_id))["filesystem"] == GOOD["filesystem"]
    asyncio.run(other.run("Go"))
    assert seen(other, str(other.last_session_id)) == empty


def test_a_session_that_started_elsewhere_is_not_overwritten(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    agent, other = desk(make_agent, tmp_path), desk(make_agent, tmp_path)
    agent.load_state({**GOOD, "session_id": "s"})
    asyncio.run(other.run("Go", "s"))
    with pytest.raises(Conflict, match="load it again"):
        asyncio.run(agent.run("Go", "s"))
    agent.load_state({**GOOD, "session_id": "s"})
    asyncio.run(agent.run("Go", "s"))
    assert seen(agent, "s")["skills"] == GOOD["skills"]


def test_the_session_of_another_agent_is_refused(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = desk(make_agent, tmp_path, name="one")
    agent.load_state({**GOOD, "session_id": "s"})
    asyncio.run(agent.run("Go", "s"))
    other = desk(make_agent, tmp_path, name="two")
    with pytest.raises(Conflict, match="belongs to the agent 'one'"):
        other.get_state("s")
    with pytest.raises(Conflict, match="belongs to the agent 'one'"):
        other.load_state({"session_id": "s"})
    with pytest.raises(Conflict, match="'s' belongs to another agent"):
        asyncio.run(other.run("Go", "s"))
    assert seen(agent, "s")["planning"]["todos"]


def test_a_session_at_work_is_refused(make_agent: MakeAgent, tmp_path: Path) -> None:
    turns = [{"tool_calls": [("write_file", {"path": "/b", "content": "x"})]}, "ok"]
    agent = desk(make_agent, tmp_path, turns, interrupt_on={"write_file": True})
    with pytest.raises(RunInterrupted):
        asyncio.run(agent.run("Go", "s"))
    before = seen(agent, "s")
    with pytest.raises(SetupError, match="at work"):
        agent.load_state({**GOOD, "session_id": "s"})
    assert seen(agent, "s") == before


def test_a_middleware_with_a_running_tool_is_not_disturbed(
    make_agent: MakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware_state, "RESERVE_SECONDS", 0.01)

    class Slow(Basket):
        async def show(self) -> str:  # type: ignore[override]
            """Show the state."""
            with pytest.raises(SetupError, match="in use by a session"):
                slow.load_state({**GOOD, "session_id": "other"})
            return json.dumps(self.state)

        name = "basket"

    turns = [{"tool_calls": [("show", {})]}, "ok"]
    slow = desk(make_agent, tmp_path, turns, middleware=[Slow()])
    asyncio.run(slow.run("Go", "s"))
    assert seen(slow, "s")["middleware"] == {"basket": {"items": []}}


@pytest.mark.bubblewrap
def test_files_are_not_given_to_an_agent_with_a_sandbox(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    agent = desk(make_agent, tmp_path, sandbox=True, sandbox_working_dir=None)
    with pytest.raises(SetupError, match="filesystem"):
        agent.load_state({**GOOD, "session_id": "s"})
    state = {name: part for name, part in GOOD.items() if name != "filesystem"}
    agent.load_state({**state, "session_id": "s"})
    assert set(seen(agent, "s")) == {"planning", "skills", "middleware"}


def test_a_loaded_state_wins_over_the_list_of_the_middleware(make_agent: MakeAgent) -> None:
    planning = PlanningMiddleware()
    planning.todo_list.add("given before")
    agent = make_agent(["ok"], middleware=[planning])
    agent.load_state({"planning": GOOD["planning"], "session_id": "s"})
    asyncio.run(agent.run("Go", "s"))
    assert [item.content for item in planning.todo_list.items] == ["Buy"]


PROGRAM = """
import asyncio, json, os, sys
from vel import create_deep_agent, scripted_model

async def main():
    database, given, told = sys.argv[1:]
    with open(given) as file:
        states = json.load(file)
    async with create_deep_agent(
        model=scripted_model(["ok"]), sandbox=False, include_builtin_skills=False,
        skill_dirs=["skills"], skill_mode="system_prompt", persistence_path=database,
    ) as agent:
        for state in states:
            agent.load_state(state)
            await agent.run("Go", state["session_id"])
        with open(told, "w") as file:
            json.dump([agent.get_state(state["session_id"]) for state in states], file)
asyncio.run(main())
"""


@pytest.mark.slow
def test_another_process_with_another_database_restores_the_same(place: Path, cache: Path) -> None:
    for name in SKILLS:
        write_skill(place / "skills", name)
    found: list[dict[str, Any]] = []

    @settings(max_examples=8, database=None, derandomize=True)
    @given(states())
    def collect_states(state: dict[str, Any]) -> None:
        found.append({"session_id": f"s{len(found)}", **state})

    collect_states()
    (place / "0.json").write_text(json.dumps(found))
    for number in (1, 2):
        names = [f"{number}.sqlite3", f"{number - 1}.json", f"{number}.json"]
        run(f"import sys\nsys.argv[1:] = {names!r}\n{PROGRAM}", place, cache)
        assert json.loads((place / f"{number}.json").read_text()) == found
