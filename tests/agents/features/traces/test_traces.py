"""The trace of real runs, for their owners and for others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.features.traces.pages import written
from agents.features.traces.traces import trace_of
from agents.models import Message, Run, RunEvent, ToolCall
from tests.agents.api.rows import client_for, make_user
from tests.agents.engine.test_model_faults import served
from tests.support import runs
from tests.support.messages_script import ToolUse, Turn
from tests.support.subagents import delegate

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = [
    Turn(text="First.", tool_uses=[ToolUse("write_file", {"path": "/a", "content": "one"})]),
    Turn(text="Then.", tool_uses=[ToolUse("read_file", {"path": "/nowhere"})]),
    Turn(text="Done."),
]


@pytest.fixture
def run() -> Run:
    """Run three turns with one failed tool call."""
    user = runs.make_user()
    with served(list(TURNS)):
        runs.make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        made = runs.drive_to_end(runs.start_run(user, "Do it"))
    assert made.status == "completed", made.error_message
    return made


def ada() -> User:
    return User.objects.get(username="ada")


def spans(run: Run) -> list[tuple[str, str, str, int | None]]:
    found = trace_of(run, ada())
    return [(row.span.kind, row.span.name, row.span.status, row.span.turn) for row in found.rows]


def page(user: User, run: Run) -> Any:
    browser = Client()
    browser.force_login(user)
    return browser.get(f"/runs/{run.pk}/trace/")


def test_a_trace_has_the_queue_each_model_call_and_each_tool_call_in_order(run: Run) -> None:
    model = "claude-sonnet-5-5"
    assert spans(run) == [
        ("queue", "", "done", None),
        ("model", model, "done", 1),
        ("tool", "write_file", "done", 1),
        ("model", model, "done", 2),
        ("tool", "read_file", "failed", 2),
        ("model", model, "done", 3),
    ]


def test_spans_lie_inside_the_trace_and_do_not_end_before_they_start(run: Run) -> None:
    found = trace_of(run, ada())
    for row in found.rows:
        assert row.span.end is not None
        assert found.start <= row.span.start <= row.span.end <= found.end


def test_the_costs_of_the_model_calls_add_up_to_the_cost_of_the_run(run: Run) -> None:
    usages = [row.span.usage for row in trace_of(run, ada()).rows if row.span.usage]
    assert sum(usage.cost for usage in usages if usage.cost is not None) == run.clock.cost
    assert sum(usage.prompt_tokens + usage.output_tokens for usage in usages) == (
        run.clock.total_tokens
    )


def test_a_wait_for_a_decision_is_a_span_from_parking_to_the_decision(run: Run) -> None:
    seq = run.clock.seq
    start = timezone.now()
    for number, (kind, data) in enumerate(
        [("run.suspended", '{"reason": "approval"}'), ("run.resumed", '{"reason": "x"}')], 1
    ):
        RunEvent.objects.create(
            run=run,
            seq=seq + number,
            type=kind,
            data=data,
            created_at=start + timedelta(minutes=number),
        )
    (wait,) = (row.span for row in trace_of(run, ada()).rows if row.span.kind == "wait")
    assert (wait.name, wait.end) == ("approval", start + timedelta(minutes=2))
    assert wait.start == start + timedelta(minutes=1)


def test_a_model_call_in_progress_has_no_end_and_is_failed_after_the_end_of_the_run(
    run: Run,
) -> None:
    Message.objects.filter(run=run, turn=3).delete()
    Run.objects.filter(pk=run.pk).update(ended_at=None, status="running")
    (last,) = (row.span for row in trace_of(Run.objects.get(pk=run.pk), ada()).rows[-1:])
    assert (last.kind, last.turn, last.end, last.status) == ("model", 3, None, "running")
    (last,) = (row.span for row in trace_of(run, ada()).rows[-1:])
    assert (last.end, last.status) == (run.ended_at, "failed")


def test_the_spans_of_a_subagent_follow_the_call_that_started_it(run: Run) -> None:
    with transaction.atomic():
        (child,) = delegate(run, "Look around")
    found = [(row.span.run_id, row.depth) for row in trace_of(run, ada()).rows]
    assert found[-1] == (child.pk, 1)
    first = ToolCall.objects.get(run=run, tool="write_file")
    ToolCall.objects.filter(children=child).update(started_at=first.started_at, finished_at=None)
    found = [(row.span.run_id, row.depth) for row in trace_of(run, ada()).rows]
    assert found[2:5] in (
        [(run.pk, 0), (run.pk, 0), (child.pk, 1)],
        [(run.pk, 0), (child.pk, 1), (run.pk, 0)],
    )
    assert found[5:] == [(run.pk, 0)] * 3


def test_a_trace_needs_as_many_queries_with_one_subagent_as_with_three(run: Run) -> None:
    counts = []
    for tasks in (["One"], ["Two", "Three"]):
        with transaction.atomic():
            delegate(run, *tasks)
        with CaptureQueriesContext(connection) as queries:
            found = trace_of(Run.objects.get(pk=run.pk), ada())
        counts.append(len(queries))
    assert len({row.span.run_id for row in found.rows}) == 4
    assert counts[0] == counts[1]


def test_other_users_get_404_on_the_page_and_by_rest(run: Run) -> None:
    mallory = make_user("mallory")
    assert page(mallory, run).status_code == 404
    assert client_for(mallory).get(f"/api/v1/runs/{run.pk}/trace").status_code == 404


def test_the_page_links_each_bar_to_its_place_in_the_transcript(run: Run) -> None:
    text = page(ada(), run).content.decode()
    call = ToolCall.objects.get(run=run, turn=1)
    assert f'href="/runs/{run.pk}/#call%3D{call.call_id}"' in text
    assert f'href="/runs/{run.pk}/#step%3D3"' in text
    assert f'href="/runs/{run.pk}/fork/?step=2"' in text


def test_a_hostile_name_of_a_tool_is_shown_as_text(run: Run) -> None:
    ToolCall.objects.filter(run=run, turn=1).update(
        tool="<img src=x onerror=alert(1)>\u202e", call_id='"><script>'
    )
    text = page(ada(), run).content.decode()
    assert "<img src=x" not in text
    assert '<script>"' not in text
    assert "&lt;img src=x onerror=alert(1)&gt;⟨U+202E⟩" in text


def test_rest_returns_the_same_spans(run: Run) -> None:
    body = client_for(ada()).get(f"/api/v1/runs/{run.pk}/trace").json()
    assert [(span["kind"], span["step"]) for span in body["spans"]] == [
        (kind, turn) for kind, _, _, turn in spans(run)
    ]
    (first,) = (span for span in body["spans"] if (span["kind"], span["step"]) == ("model", 1))
    assert first["usage"]["output_tokens"] > 0
    assert body["omitted_runs"] == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.34, "340 ms"), (2.51, "2.5 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (-1, "0 ms")],
)
def test_lengths_of_time_are_short(seconds: float, text: str) -> None:
    assert written(timedelta(seconds=seconds)) == text
