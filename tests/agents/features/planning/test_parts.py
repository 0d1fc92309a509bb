"""The feature in other parts of Vel, and Vel without the feature."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from agents.features.compaction.opening import opening_text
from agents.features.compaction.plan import Room
from agents.features.planning.todo_list import Plan
from agents.features.planning.todos import list_after, read_plan, store_plan
from agents.kernel.reminders import reminder_sections
from agents.kernel.session_state import session_states
from agents.models import Epoch, Run
from tests.support.runs import drive_to_end, events, make_agent, make_user, script_file, start_run
from velproject.cli.commands.runs.display import Display

FEATURE = "agents.features.planning"
TODOS = [{"content": "Look", "status": "completed"}, {"content": "Tell", "status": "in_progress"}]


def planned(tmp_path: Path) -> Run:
    user = make_user("olga")
    call = {"name": "write_todos", "input": {"todos": TODOS}}
    turns: list[dict[str, Any]] = [{"tool_calls": [call]}, {"text": "Done."}]
    make_agent(user, model=script_file(tmp_path, turns))
    run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    return run


def page_of(run: Run) -> str:
    browser = Client()
    browser.force_login(run.owner)
    return browser.get(f"/runs/{run.pk}/").content.decode()


def head_of(run: Run) -> str:
    return json.dumps(Epoch.objects.get(thread=run.thread_id).head)


def test_the_terminal_shows_the_list_and_not_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display(live=False)
    call = {"call_id": "c", "tool": "write_todos", "input": {"todos": TODOS}}
    display.event({"type": "tool.called", "data": call})
    display.event({"type": "todos.updated", "data": {"todos": TODOS}})
    display.event({"type": "tool.completed", "data": {"call_id": "c", "output": "{}"}})
    display.close()
    assert capsys.readouterr().err == "• write_todos\n  ● Look\n  ◐ Tell\n"


@pytest.mark.django_db(transaction=True)
def test_open_items_are_repeated_before_the_files(tmp_path: Path) -> None:
    run = planned(tmp_path)
    sections = [(section, section.read(run.thread_id)) for section in reminder_sections()]
    room = Room(usable=10_000, fixed=0)
    text = opening_text([], "Sums.", "model", sections, ["/a"], ["## Loaded skills"], room)
    assert text.endswith(
        "Sums.\n\n## Open to-dos\n- [~] Tell\n\n## Files written\n- /a\n\n## Loaded skills"
    )
    items = [replace(item, content="x" * 50_000) for item in read_plan(run.thread_id).items]
    store_plan(run.thread_id, Plan(items))
    sections = [(section, section.read(run.thread_id)) for section in reminder_sections()]
    text = opening_text([], "", "model", sections, [], [], room)
    assert len(text) < 0.04 * room.free * 4 + 500


@pytest.mark.django_db(transaction=True)
def test_the_state_of_a_session_has_the_list(tmp_path: Path) -> None:
    run = planned(tmp_path)
    [part] = [state for state in session_states() if state.name == "planning"]
    state = part.read(run.thread_id)
    assert [todo["content"] for todo in state["todos"]] == ["Look", "Tell"]
    with transaction.atomic():
        store_plan(run.thread_id, Plan())
        part.write(run.thread_id, json.loads(json.dumps(state)))
    assert part.read(run.thread_id) == state
    assert list_after(run) == state, "the page and REST read the events"


@pytest.mark.django_db(transaction=True)
def test_the_page_of_a_run_has_a_plan(tmp_path: Path) -> None:
    run = planned(tmp_path)
    page = page_of(run)
    assert "<h2>Plan</h2>" in page
    assert page.index("vel_planning/plan.js") < page.index("agents/web/run.js")
    assert "## Planning" in head_of(run)


@pytest.mark.django_db(transaction=True)
def test_nothing_is_left_without_the_feature(tmp_path: Path, settings: Any) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != FEATURE]
    run = planned(tmp_path)
    assert events(run, "todos.updated") == []
    assert [call.is_error for call in run.tool_calls.all()] == [True]
    assert "todos" not in head_of(run)
    page = page_of(run)
    assert "<h2>Usage</h2>" in page
    assert "<h2>Plan</h2>" not in page
    assert "vel_planning" not in page
    assert reminder_sections() == []
    assert "planning" not in [state.name for state in session_states()]
