"""Errors between Vel and the model's server, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from agents.models import Message, Run
from agents.services.agent_definitions.actions import save_agent
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Fault, ToolUse, Turn
from tests.support.runs import drive_to_end, event_types, events, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def served(turns: Sequence[Turn], **vel: Any) -> Iterator[MessagesServer]:
    with MessagesServer(turns) as server:
        values = {
            **settings.VEL,
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "RETRY_BASE_SECONDS": 0.01,
            **vel,
        }
        with override_settings(VEL=values):
            yield server


def run_with(turns: Sequence[Turn], **vel: Any) -> tuple[Run, MessagesServer]:
    user = make_user()
    with served(turns, **vel) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = drive_to_end(start_run(user, "Do it"))
    return run, server


ANSWER = Turn(text="All done.")
LOOK = Turn(text="Looking.", tool_uses=[ToolUse("ls", {"path": "/"})])

RETRIED = {
    "429": Fault("status", 429, "rate_limit_error", "slow down"),
    "529": Fault("status", 529, "overloaded_error", "overloaded"),
    "500": Fault("status", 500, "api_error", "oops"),
    "dropped before headers": Fault("drop_before_headers"),
    "dropped in the middle": Fault("drop_mid_stream"),
    "hanging before headers": Fault("hang_before_headers"),
    "hanging in the middle": Fault("hang_mid_stream"),
    "malformed": Fault("malformed_stream"),
    "truncated": Fault("truncated"),
    "error event": Fault("error_event", error_type="overloaded_error", message="overloaded"),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", RETRIED)
def test_a_fault_that_may_pass_is_tried_again_without_a_trace_in_the_transcript(name: str) -> None:
    broken = Turn(text="Half an answer that is lost", fault=RETRIED[name])
    run, server = run_with([LOOK, broken, broken, ANSWER], MODEL_IDLE_SECONDS=0.5)
    assert run.status == "completed", run.error_message
    assert server.violations == []
    messages = Message.objects.filter(run=run, role="assistant")
    assert [message.text for message in messages] == ["Looking.", "All done."]
    assert len(events(run, "step.reset")) == 2
    assert event_types(run).count("step.completed") == 2


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (
            Fault("status", 400, "invalid_request_error", "max_tokens: too large"),
            "model_invalid_request",
        ),
        (Fault("status", 401, "authentication_error", "invalid x-api-key"), "model_authentication"),
        (Fault("status", 403, "permission_error", "not yours"), "model_permission"),
        (Fault("status", 404, "not_found_error", "model: no such model"), "model_not_found"),
    ],
)
def test_a_fault_that_stays_ends_the_run_with_the_servers_words(fault: Fault, code: str) -> None:
    run, server = run_with([Turn(fault=fault)])
    assert (run.status, run.error_code) == ("failed", code)
    assert fault.message in run.error_message
    assert len(server.requests) == 1


def test_retries_end_after_the_configured_attempts() -> None:
    broken = Turn(fault=RETRIED["529"])
    run, server = run_with([broken] * 5, MODEL_ATTEMPTS=3)
    assert (run.status, run.error_code) == ("failed", "model_overloaded")
    assert len(server.requests) == 3


def test_a_refusal_fails_the_run() -> None:
    run, _ = run_with([Turn(text="No.", stop_reason="refusal")])
    assert (run.status, run.error_code) == ("failed", "refusal")


def test_parallel_calls_unknown_tools_and_bad_inputs_are_answered_in_order() -> None:
    uses = [
        ToolUse("ls", {"path": "/"}),
        ToolUse("no_such_tool", {}),
        ToolUse("read_file", {"limit": "many"}),
        ToolUse("write_file", {"path": "/a", "content": "x"}),
        ToolUse("read_file", {"path": "/a"}),
    ]
    run, server = run_with([Turn(tool_uses=uses), ANSWER])
    assert run.status == "completed", run.error_message
    assert server.violations == []
    results = json.loads(server.requests[-1].body)["messages"][-1]["content"]
    assert [bool(result.get("is_error")) for result in results] == [False, True, True, False, False]
    assert "There is no tool 'no_such_tool'" in results[1]["content"]
    assert "path" in results[2]["content"]
    assert len(events(run, "tool.rejected")) == 2


def test_thinking_goes_back_unchanged() -> None:
    thought = Turn(thinking="Hmm, let me see.", tool_uses=[ToolUse("ls", {"path": "/"})])
    run, server = run_with([thought, ANSWER])
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert events(run, "reasoning.completed")[0]["text"] == "Hmm, let me see."


@pytest.mark.slow
def test_thoughts_of_an_earlier_version_of_the_agent_are_left_out() -> None:
    user = make_user()
    thought = Turn(thinking="Under the old prompt.", tool_uses=[ToolUse("ls", {"path": "/"})])
    with served([thought, ANSWER, thought, ANSWER]) as server:
        agent = make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        drive_to_end(start_run(user, "One", key="s"))
        agent.system_prompt = "You are somebody else now."
        save_agent(agent)
        second = drive_to_end(start_run(user, "Two", key="s"))
    assert second.status == "completed", second.error_message
    assert server.violations == []
    assert second.thread.epochs.count() == 2
    first_of_new = json.loads(server.requests[2].body)
    assert "Under the old prompt." not in json.dumps(first_of_new["messages"])
    assert first_of_new["system"][0]["text"].startswith("You are somebody else")


def test_usage_and_cost_are_counted() -> None:
    run, server = run_with([LOOK, ANSWER])
    run.clock.refresh_from_db()
    sent = [reply.usage for reply in server.replies]
    assert run.clock.output_tokens == sum(usage["output_tokens"] for usage in sent)
    assert run.clock.turn == 2
    assert run.clock.cost_known
    assert run.clock.cost_microusd > 0


@pytest.mark.slow
def test_a_second_message_continues_the_thread() -> None:
    user = make_user()
    with served([LOOK, ANSWER, Turn(text="Again.")]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        first = drive_to_end(start_run(user, "One", key="session"))
        second = drive_to_end(start_run(user, "Two", key="session"))
    assert first.thread_id == second.thread_id
    assert server.violations == []
    last = json.loads(server.requests[-1].body)
    roles = [message["role"] for message in last["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
