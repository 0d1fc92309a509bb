"""Calls of one turn change the state of the run in the model's order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.features.planning.todos import read_plan
from agents.models import ToolCall
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run
from tests.support.skills import write_skill

pytestmark = pytest.mark.django_db(transaction=True)

Calls = list[tuple[str, dict[str, Any]]]


def play(directory: Path, *turns: Calls, skills: Path | None = None) -> list[ToolCall]:
    """Play these calls, and return their rows in the model's order."""
    ada = make_user()
    script = [{"tool_calls": [{"name": name, "input": i} for name, i in turn]} for turn in turns]
    make_agent(ada, model=script_file(directory, [*script, {"text": "Done."}]))
    run = drive_to_end(start_run(ada, skill_directories=(str(skills),) if skills else ()))
    return list(ToolCall.objects.filter(run=run).order_by("turn", "position"))


def plan(*contents: str) -> dict[str, Any]:
    return {"todos": [{"content": content, "status": "pending"} for content in contents]}


@pytest.mark.both_databases
def test_the_last_list_of_a_turn_is_kept(tmp_path: Path) -> None:
    lists: Calls = [("write_todos", plan(f"plan {number}")) for number in range(5)]
    *_, shown = play(tmp_path, [*lists, ("read_todos", {})])
    [item] = read_plan(shown.run.thread_id).items
    assert item.content == "plan 4"
    assert "plan 4" in str(shown.result)


def test_no_change_of_a_turn_is_lost(tmp_path: Path) -> None:
    done: Calls = [("write_todos", {"completed": [f"todo_{number}"]}) for number in range(2)]
    more: Calls = [("write_todos", {"next_steps": [name]}) for name in ("a", "b")]
    *_, last = play(tmp_path, [("write_todos", plan("first", "second"))], done, more)
    items = read_plan(last.run.thread_id).items
    assert [(item.content, item.status) for item in items] == [
        ("first", "completed"),
        ("second", "completed"),
        ("a", "pending"),
        ("b", "pending"),
    ]


def test_a_skill_can_be_loaded_and_deactivated_in_one_turn(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    name = {"name": "beans"}
    both: Calls = [("load_skill", name), ("deactivate_skill", name)]
    calls = play(tmp_path, both, skills=tmp_path / "skills")
    assert [call.status for call in calls] == ["succeeded", "succeeded"]
