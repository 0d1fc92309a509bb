"""Many turns: requests have the same prefix, and a turn adds few rows. Invariants 5 and 6."""

from __future__ import annotations

from collections import Counter

import pytest

from agents.models import Message, RunEvent, ToolCall
from tests.agents.engine.test_model_faults import served
from tests.support.messages_prefix import assert_prefix_stable
from tests.support.messages_script import ToolUse, Turn
from tests.support.runs import drive_to_end, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)


def turns(count: int) -> list[Turn]:
    kinds = [
        Turn(text="One.", tool_uses=[ToolUse("ls", {"path": "/"})]),
        Turn(thinking="Two at once.", tool_uses=[ToolUse("read_todos"), ToolUse("ls", {})]),
        Turn(tool_uses=[ToolUse("write_file", {"path": "/a", "content": "é\n\u2028\U0001f600"})]),
    ]
    return [kinds[number % len(kinds)] for number in range(count)] + [Turn(text="Done.")]


@pytest.mark.slow_cases
@pytest.mark.parametrize("count", [1, 50, pytest.param(200, marks=pytest.mark.storm)])
def test_every_request_starts_with_the_previous_one(count: int) -> None:
    user = make_user()
    with served(turns(count)) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert len(server.requests) == count + 1
    assert_prefix_stable(server.requests)


@pytest.mark.slow
def test_the_rows_of_a_turn_do_not_grow_with_the_conversation() -> None:
    user = make_user()
    # Different calls: the guardrail notices repeated calls.
    looks = [
        Turn(text="Again.", tool_uses=[ToolUse("glob", {"pattern": f"*.{number}"})])
        for number in range(40)
    ]
    with served([*looks, Turn(text="Done.")]):
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = drive_to_end(start_run(user))
    assert Message.objects.filter(run=run).count() == 42
    assert ToolCall.objects.filter(run=run).count() == 40
    kinds = Counter(RunEvent.objects.filter(run=run).values_list("type", flat=True))
    # The number of streamed events depends on the model's speed; that of stored events does not.
    kept = {
        kind: count for kind, count in kinds.items() if not kind.endswith((".delta", ".started"))
    }
    assert kept == {
        "text.completed": 41,
        "step.completed": 41,
        "tool.called": 40,
        "tool.completed": 40,
        "run.completed": 1,
    }
    sizes = [len(data) for data in RunEvent.objects.filter(run=run).values_list("data", flat=True)]
    assert max(sizes) < 5000
