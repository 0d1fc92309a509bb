"""A fallback model continues when an agent's own model is down, over real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.test import override_settings

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.features.fallbacks.next_model import next_spec
from agents.models import ApprovalRequest, Compaction, Message, Run
from agents.providers.base import Usage
from agents.providers.prices import cost_microusd
from agents.selectors.usage import usage_by_day
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.spec import AgentSpec
from tests.agents.engine.test_recovery import crash_once
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Fault, Request, ToolUse, Turn, http_error
from tests.support.runs import drive_to_end, events, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)

FIRST, SECOND, THIRD = "claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-4-5"
CHAIN = [{"provider": "anthropic", "model": model} for model in (SECOND, THIRD)]
LOOK = Turn(thinking="Where is it?", text="Looking.", tool_uses=[ToolUse("ls", {"path": "/"})])
ANSWER = Turn(text="All done.")
OVERLOADED = Turn(text="Half an answer", fault=http_error(529, "overloaded"))


def by_model(**turns: Sequence[Turn] | Turn) -> Callable[[Request], Turn]:
    """Return a script with the answers of each model: in order, or always the same."""
    left = {name: iter(each) for name, each in turns.items() if not isinstance(each, Turn)}

    def turn_for(request: Request) -> Turn:
        name = next(word for word in ("opus", "haiku", "sonnet") if word in request.json["model"])
        each = turns[name]
        return each if isinstance(each, Turn) else next(left[name])

    return turn_for


@contextmanager
def served(script: Callable[[Request], Turn], **vel: Any) -> Iterator[MessagesServer]:
    with MessagesServer(script) as server:
        values = {
            **settings.VEL,
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "RETRY_BASE_SECONDS": 0.001,
            "MODEL_ATTEMPTS": 2,
            **vel,
        }
        with override_settings(VEL=values):
            yield server
    crash_points.crash_at(None)


def a_run(fallbacks: list[dict[str, str]] | None = None, **fields: Any) -> Run:
    user = make_user()
    chain = CHAIN if fallbacks is None else fallbacks
    make_agent(user, provider="anthropic", model=FIRST, fallbacks=chain, **fields)
    return start_run(user, key="s")


def asked(server: MessagesServer) -> list[str]:
    return [request.json["model"] for request in server.requests]


def models_paid(run: Run) -> list[str]:
    """Return the model of each reply. Each reply has the price of its model."""
    replies = list(Message.objects.filter(run=run, role="assistant").order_by("turn"))
    for reply in replies:
        cached = (reply.cache_read_tokens, reply.cache_write_tokens)
        used = Usage(reply.input_tokens, reply.output_tokens, *cached)
        assert reply.cost_microusd == cost_microusd(reply.model, used)
    return [reply.model for reply in replies]


DOWN = {
    "overloaded for ever": http_error(529, "overloaded"),
    "rate limited for ever": http_error(429, "slow down"),
    "broken": http_error(500, "oops"),
    "dies in mid-stream": Fault("drop_mid_stream"),
    "hangs": Fault("hang_mid_stream"),
    "malformed": Fault("malformed_stream"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DOWN)
def test_the_next_model_continues_and_is_paid(name: str) -> None:
    dead = Turn(text="Half an answer that is lost", fault=DOWN[name])
    script = by_model(opus=[LOOK, dead, dead], haiku=[LOOK, ANSWER])
    with served(script, MODEL_IDLE_SECONDS=0.3) as server:
        run = drive_to_end(a_run(thinking="adaptive", effort="high"))
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert asked(server) == [FIRST, FIRST, FIRST, SECOND, SECOND]
    told = server.requests[3].json
    # The request has the calls and results of the other model, without its thinking blocks.
    assert "Where is it?" not in json.dumps(told["messages"])
    assert told["messages"][-1]["content"][0]["type"] == "tool_result"
    assert not {"thinking", "output_config"} & set(told)
    (event,) = events(run, "model.fallback")
    assert (event["from_model"], event["model"], event["step"]) == (FIRST, SECOND, 2)
    assert event["code"] in {
        "overloaded", "rate_limited", "server_error", "connection", "stalled", "malformed_stream",
    }  # fmt: skip
    assert models_paid(run) == [FIRST, SECOND, SECOND]
    replies = Message.objects.filter(run=run, role="assistant")
    assert not any("Half" in reply.text for reply in replies)
    rows = usage_by_day(run.owner, 2, ZoneInfo("UTC"))
    assert {row.model: row.calls for row in rows} == {FIRST: 1, SECOND: 2}


@pytest.mark.parametrize(
    ("provider", "model", "effort", "kept"),
    [
        ("openai", "gpt-6-sol", "low", "low"),
        ("openai", "gpt-6-sol", "max", "high"),
        ("openai", "gpt-6-sol", "", ""),
        ("openai", "gpt-4.1", "high", ""),
        ("openai-responses", "gpt-6-sol", "high", "high"),
        ("openai-chat", "gpt-6-sol", "high", ""),
        ("google", "gemini-3.8-flash", "max", "max"),
        ("anthropic", "claude-haiku-4-5", "high", ""),
        ("anthropic", "claude-sonnet-5-5", "max", "max"),
        ("openai", "a-model-that-nobody-knows", "max", "max"),
    ],
)
def test_a_fallback_keeps_the_effort_if_it_accepts_one(
    provider: str, model: str, effort: str, kept: str
) -> None:
    spec = AgentSpec.model_validate(
        {
            "provider": "anthropic",
            "model": FIRST,
            "effort": effort,
            "name": "A",
            "slug": "a",
            "fallbacks": [{"provider": provider, "model": model}],
        }
    )
    after = next_spec(spec)
    assert after is not None
    assert after.effort == kept


def test_each_model_of_the_chain_is_tried_and_then_the_run_fails() -> None:
    with served(by_model(opus=OVERLOADED, haiku=OVERLOADED, sonnet=OVERLOADED)) as server:
        run = drive_to_end(a_run())
    assert (run.status, run.error_code) == ("failed", "model_overloaded")
    assert asked(server) == [FIRST] * 2 + [SECOND] * 2 + [THIRD] * 2
    assert [event["model"] for event in events(run, "model.fallback")] == [SECOND, THIRD]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (http_error(400, "max_tokens: too large"), "model_invalid_request"),
        (http_error(404, "model: none such"), "model_not_found"),
        (http_error(401, "invalid x-api-key"), "model_authentication"),
    ],
)
def test_other_errors_than_an_outage_end_the_run(fault: Fault, code: str) -> None:
    with served(by_model(opus=Turn(fault=fault))) as server:
        run = drive_to_end(a_run())
    assert (run.status, run.error_code) == ("failed", code)
    assert asked(server) == [FIRST]
    assert run.thread.epochs.count() == 1


def test_a_refusal_is_an_answer() -> None:
    with served(by_model(opus=Turn(text="No.", stop_reason="refusal"))) as server:
        run = drive_to_end(a_run())
    assert (run.status, run.error_code) == ("failed", "refusal")
    assert asked(server) == [FIRST]


def test_a_refused_key_counts_if_the_operator_configures_it() -> None:
    refused = Turn(fault=http_error(401, "invalid x-api-key"))
    script = by_model(opus=refused, haiku=ANSWER)
    with served(script, FALLBACK_WITHOUT_KEY=True) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    assert asked(server) == [FIRST, SECOND]


def test_the_next_run_starts_with_the_recovered_first_model() -> None:
    script = by_model(opus=[OVERLOADED, OVERLOADED, LOOK, ANSWER], haiku=ANSWER)
    with served(script) as server:
        first = drive_to_end(a_run())
        second = drive_to_end(start_run(first.owner, "Again", key="s"))
    assert (first.status, second.status) == ("completed", "completed"), second.error_message
    assert asked(server) == [FIRST, FIRST, SECOND, FIRST, FIRST]
    assert events(second, "model.fallback") == []
    models = [epoch.head["model"] for epoch in first.thread.epochs.order_by("number")]
    assert models == [FIRST, SECOND, FIRST]


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("point", "before", "after"),
    [
        (CrashPoint.MODEL_DOWN, [FIRST] * 2, [FIRST] * 2 + [SECOND]),
        (CrashPoint.FELL_BACK, [FIRST] * 2, [SECOND]),
        (CrashPoint.REPLIED, [FIRST] * 2 + [SECOND], [SECOND]),
    ],
)
def test_a_crash_during_the_switch_loses_nothing(
    point: CrashPoint, before: list[str], after: list[str]
) -> None:
    """After the switch is stored, a new driver uses the second model and skips the first."""
    with served(by_model(opus=OVERLOADED, haiku=ANSWER)) as server:
        run = a_run()
        crash_once(run, point)
        assert asked(server) == before
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert asked(server) == before + after
    assert len(events(run, "model.fallback")) == 1
    assert run.thread.epochs.count() == 2
    assert server.violations == []


def test_a_run_that_waited_for_a_person_continues_with_its_model() -> None:
    write = Turn(tool_uses=[ToolUse("write_file", {"path": "/a", "content": "x"})])
    script = by_model(opus=[OVERLOADED, OVERLOADED], haiku=[write, ANSWER])
    with served(script) as server:
        run = drive_to_end(a_run(interrupt_on={"write_file": True}), until=("waiting", "failed"))
        assert run.status == "waiting", run.error_message
        request = ApprovalRequest.objects.get(run=run)
        decide_approval(request.pk, DecisionRequest("approve", request.digest), by=run.owner)
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert asked(server) == [FIRST, FIRST, SECOND, SECOND]
    assert models_paid(run) == [SECOND, SECOND]
    assert run.thread.epochs.count() == 2


def test_an_agent_without_fallbacks_is_as_it_was() -> None:
    with served(by_model(opus=[LOOK, OVERLOADED, OVERLOADED])) as server:
        run = drive_to_end(a_run([]))
    assert (run.status, run.error_code) == ("failed", "model_overloaded")
    assert asked(server) == [FIRST] * 3
    assert "fallbacks" not in run.spec
    assert events(run, "model.fallback") == []


@pytest.mark.both_databases
def test_a_budget_reserves_the_cost_of_the_current_model() -> None:
    """The second model has no known price: a cost limit prevents calls to it."""
    unknown = [{"provider": "anthropic", "model": "opus-of-our-own"}]
    user = make_user()
    with served(by_model(haiku=OVERLOADED, opus=ANSWER)) as server:
        make_agent(user, provider="anthropic", model=SECOND, fallbacks=unknown, max_cost=1)
        run = drive_to_end(start_run(user), until=("waiting", "completed", "failed"))
    assert (run.status, run.wait_reason) == ("waiting", "budget"), run.error_message
    assert asked(server) == [SECOND, SECOND]
    asks = ApprovalRequest.objects.get(run=run)
    assert "opus-of-our-own" in json.dumps([asks.prompt, asks.input])


@pytest.mark.slow
def test_a_subagent_starts_with_the_current_model_of_its_parent() -> None:
    order = ToolUse("task", {"description": "Look around.", "subagent_type": "explore"})
    script = by_model(
        opus=[OVERLOADED, OVERLOADED],
        haiku=[Turn(tool_uses=[order]), Turn(text="Found."), ANSWER],
    )
    with served(script) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    assert asked(server) == [FIRST, FIRST] + [SECOND] * 3
    child = run.children.get()
    assert (child.spec["model"], child.spec["fallbacks"]) == (SECOND, CHAIN[1:])
    assert events(child, "model.fallback") == []


def test_a_summary_is_the_next_models_where_the_first_is_down() -> None:
    look = Turn(text="Looking. " * 800, tool_uses=[ToolUse("ls", {"path": "/"})])
    seen: list[tuple[str, bool]] = []

    def turn_for(request: Request) -> Turn:
        sums_up = "You keep the notes" in json.dumps(request.json["system"])
        seen.append((request.json["model"], sums_up))
        if request.json["model"] == "big-local":
            return OVERLOADED if sums_up else look
        return Turn(text="Notes: all is well.") if sums_up else ANSWER

    with served(turn_for, CONTEXT_WINDOW=12_000):
        user = make_user()
        make_agent(
            user,
            provider="anthropic",
            model="big-local",
            fallbacks=[{"provider": "anthropic", "model": "small-local"}],
            max_output_tokens=1_000,
        )
        run = drive_to_end(start_run(user, "Go"))
    assert run.status == "completed", run.error_message
    assert seen[-2:] == [("small-local", True), ("small-local", False)]
    assert seen.count(("big-local", True)) == 2
    assert Compaction.objects.filter(thread=run.thread).latest("number").by == "model"
