"""A run from its message to its answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.models import Message, ToolCall
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_is_answered() -> None:
    user = make_user()
    make_agent(user)
    run = drive_to_end(start_run(user, "Hello there"))
    assert (run.status, run.finish_reason) == ("completed", "end_turn")
    assert [message.role for message in Message.objects.filter(run=run)] == ["user", "assistant"]
    assert event_types(run)[0] == "run.started"
    assert event_types(run)[-1] == "run.completed"
    assert [event["seq"] for event in events(run)] == list(range(1, len(events(run)) + 1))


def test_tools_run_and_their_results_reach_the_model(tmp_path: Path) -> None:
    user = make_user()
    model = script_file(
        tmp_path,
        [
            {
                "text": "Writing.",
                "tool_calls": [
                    {
                        "name": "write_todos",
                        "input": {"todos": [{"content": "a", "status": "done"}]},
                    },
                    {"name": "write_file", "input": {"path": "/a.txt", "content": "alpha\nbeta"}},
                ],
            },
            {"tool_calls": [{"name": "read_file", "input": {"path": "/a.txt"}}]},
            {"text": "Done."},
        ],
    )
    make_agent(user, model=model)
    run = drive_to_end(start_run(user))
    assert run.status == "completed", (run.error_message, events(run))
    calls = list(ToolCall.objects.filter(run=run))
    assert [(call.tool, call.status, call.effect) for call in calls] == [
        ("write_todos", "succeeded", "read"),
        ("write_file", "succeeded", "write"),
        ("read_file", "succeeded", "read"),
    ]
    assert "beta" in json.loads(calls[2].result)
    assert run.thread.todos.get().status == "completed"
    run.clock.refresh_from_db()
    assert run.clock.turn == 3
