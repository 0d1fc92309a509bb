"""The to-do list, in both formats that models write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.features.planning.models import Todo
from agents.features.planning.todo_list import (
    STATUSES,
    Plan,
    TodoDelta,
    TodoError,
    TodoItem,
    as_markdown,
    changed,
    checked,
)
from agents.models import ToolCall
from tests.support.runs import drive_to_end, events, make_agent, make_user, script_file, start_run


def ran(tmp_path: Path, *inputs: dict[str, Any]) -> list[ToolCall]:
    user = make_user()
    calls = [{"name": "write_todos", "input": given} for given in inputs]
    turns = [{"tool_calls": [call]} for call in calls]
    turns.append({"tool_calls": [{"name": "read_todos", "input": {}}]})
    make_agent(user, model=script_file(tmp_path, [*turns, {"text": "Done."}]))
    run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    return list(ToolCall.objects.filter(run=run))


def todo(content: str, status: str = "pending", **more: str) -> dict[str, str]:
    return {"content": content, "status": status, **more}


@pytest.mark.django_db(transaction=True)
def test_a_list_replaces_the_one_before(tmp_path: Path) -> None:
    first = {"todos": [todo("one", "in_progress", active_form="doing one"), todo("two")]}
    second = {"todos": [todo("one", "done"), todo("three", "blocked", note="no key")]}
    calls = ran(tmp_path, first, second)
    rows = list(Todo.objects.values_list("content", "status", "note"))
    assert rows == [("one", "completed", ""), ("three", "blocked", "no key")]
    result = json.loads(json.loads(calls[1].result))
    assert result["ids"] == ["todo_0", "todo_1"]
    assert result["counts"] == {"pending": 0, "in_progress": 0, "completed": 1, "blocked": 1}
    assert "- [x] one" in result["todos"]
    assert [update["todos"][0]["status"] for update in events(calls[0].run, "todos.updated")] == [
        "in_progress",
        "completed",
    ]
    assert "three" in calls[2].result


@pytest.mark.django_db(transaction=True)
def test_the_current_task_of_the_older_form_is_a_heading(tmp_path: Path) -> None:
    calls = ran(
        tmp_path,
        {"current_task": "Analyzing Q4 sales data", "next_steps": ["Load", "Metrics", "Report"]},
        {"current_task": "Metrics of Q4", "completed": ["todo_0"]},
        {"current_task": "Writing", "completed": ["todo_1", "todo_2"]},
    )
    assert json.loads(json.loads(calls[2].result))["counts"]["completed"] == 3
    assert list(Todo.objects.values_list("content", "status")) == [
        (name, "completed") for name in ("Load", "Metrics", "Report")
    ]
    headings = [update["current_task"] for update in events(calls[0].run, "todos.updated")]
    assert headings == ["Analyzing Q4 sales data", "Metrics of Q4", "Writing"]


@pytest.mark.django_db(transaction=True)
def test_the_older_form_changes_the_list(tmp_path: Path) -> None:
    ran(
        tmp_path,
        {"current_task": "Analyse", "next_steps": ["load", "draw", "print"]},
        {"current_task": "draw", "next_steps": ["write"], "completed": ["todo_0"],
         "blocked": [{"id": "todo_2", "reason": "later"}]},
    )  # fmt: skip
    rows = list(Todo.objects.values_list("content", "status", "note"))
    assert ("load", "completed", "") in rows
    assert ("write", "pending", "") in rows
    assert [row for row in rows if row[1] == "in_progress"] == [("draw", "in_progress", "")]
    assert any(row[2] == "later" for row in rows)


@pytest.mark.django_db(transaction=True)
def test_an_invalid_plan_is_an_error_with_the_solution(tmp_path: Path) -> None:
    calls = ran(
        tmp_path,
        {"todos": [todo("a", "in_progress"), todo("b", "in_progress")]},
        {"todos": [todo("a", "finished")]},
        {"todos": [todo("  ")]},
        {},
        {"current_task": "x", "next_steps": [], "completed": ["todo_9"]},
    )
    assert [call.is_error for call in calls] == [True] * 5 + [False]
    assert "exactly one in_progress" in calls[0].result
    assert "pending, in_progress, completed, blocked" in calls[1].result
    assert "todo_9" in calls[4].result
    assert not Todo.objects.exists()


def test_markdown_has_one_line_for_every_item() -> None:
    items = [TodoItem(content=f"{name}\n- [x] more", status=name, note="a\nb") for name in STATUSES]
    lines = as_markdown(checked(Plan(items, "Now\n- [x] done"))).splitlines()
    assert lines[:4] == ["## Current Task", "Now - [x] done", "", "## Todo List"]
    assert [line[2:5] for line in lines[4::2]] == ["[ ]", "[~]", "[x]", "[!]"]
    assert lines[5::2] == ["  - a b"] * 4


@pytest.mark.parametrize("items", [[TodoItem(content="x")] * 201, [TodoItem(content="x" * 2_001)]])
def test_a_long_list_is_refused(items: list[TodoItem]) -> None:
    with pytest.raises(TodoError, match="shorten"):
        checked(Plan(items))


def test_a_delta_on_an_empty_list_names_no_ids() -> None:
    with pytest.raises(TodoError, match="empty"):
        changed(Plan(), TodoDelta(completed={"todo_0": ""}))


def test_an_item_keeps_its_times_until_it_changes() -> None:
    old = "2026-01-02T03:04:05+00:00"
    items = [TodoItem(content=name, created_at=old, updated_at=old) for name in "ab"]
    before = checked(Plan(items))
    after = checked(Plan([TodoItem(content="b"), TodoItem(content="a", status="done")]), before)
    same, done = after.items
    assert (same.id, same.created_at, same.updated_at) == ("todo_0", old, old)
    assert same.completed_at is None
    assert (done.created_at, done.updated_at) == (old, done.completed_at)
    assert str(done.completed_at) > old
