"""The to-do list, in both formats that models write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.features.planning.models import Todo
from agents.features.planning.todos import (
    TodoDelta,
    TodoDraft,
    TodoError,
    apply_delta,
    check_todos,
    todos_as_markdown,
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
def test_the_older_form_changes_the_list(tmp_path: Path) -> None:
    ran(
        tmp_path,
        {"current_task": "Analyse", "next_steps": ["load", "draw"]},
        {"current_task": "draw", "next_steps": ["write"], "completed": ["todo_0"],
         "blocked": [{"id": "todo_2", "reason": "later"}]},
    )  # fmt: skip
    rows = list(Todo.objects.values_list("content", "status", "note"))
    assert ("load", "completed", "") in rows
    assert ("write", "pending", "") in rows
    assert [row for row in rows if row[1] == "in_progress"] == [("draw", "in_progress", "")]
    assert any(row[2] == "later" for row in rows)


@pytest.mark.django_db(transaction=True)
def test_what_does_not_fit_is_an_error_that_says_what_to_change(tmp_path: Path) -> None:
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


def test_markdown_has_a_box_for_every_status() -> None:
    drafts = check_todos(
        [TodoDraft(name, name) for name in ("pending", "in_progress", "completed", "blocked")]
    )
    boxes = [line[2:5] for line in todos_as_markdown(drafts).splitlines()]
    assert boxes == ["[ ]", "[~]", "[x]", "[!]"]


def test_a_long_list_is_refused() -> None:
    with pytest.raises(TodoError, match="shorten"):
        check_todos([TodoDraft("x")] * 201)


def test_a_delta_on_an_empty_list_names_no_ids() -> None:
    with pytest.raises(TodoError):
        apply_delta([], TodoDelta(completed=["todo_0"]))
