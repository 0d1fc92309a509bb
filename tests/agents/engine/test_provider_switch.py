"""A thread whose agent moves from one model API to another and back.

A switch starts an epoch: each server gets the whole conversation in its own protocol, without the
thinking blocks of other servers. The servers refuse blocks that they did not create.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from agents.models import ApprovalRequest, Epoch, Message, Run
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import ToolUse, Turn
from tests.support.openai_chat_server import ChatServer
from tests.support.openai_responses_server import ResponsesServer, items_of
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    running_worker,
    start_run,
    wait_for_status,
)

pytestmark = pytest.mark.django_db(transaction=True)

ANTHROPIC = ("anthropic", "claude-sonnet-5-5")
OPENAI = ("openai-responses", "gpt-6.2-sol")


def looks(thought: str) -> Turn:
    return Turn("Looking.", [ToolUse("ls", {"path": "/"}), ToolUse("ls", {"path": "/x"})], thought)


@contextmanager
def both(
    claude: Sequence[Turn], gpt: Sequence[Turn], openai: type[MessagesServer] = ResponsesServer
) -> Iterator[tuple[MessagesServer, MessagesServer]]:
    with ExitStack() as stack:
        first = stack.enter_context(MessagesServer(claude, api_key="key-of-anthropic"))
        second = stack.enter_context(openai(gpt, api_key="key-of-openai"))
        values = {
            **settings.VEL,
            "ANTHROPIC_BASE_URL": first.url,
            "ANTHROPIC_API_KEY": "key-of-anthropic",
            "OPENAI_BASE_URL": f"{second.url}/v1",
            "OPENAI_API_KEY": "key-of-openai",
            "RETRY_BASE_SECONDS": 0.01,
        }
        with override_settings(VEL=values):
            yield first, second


def on(agent: Any, choice: tuple[str, str], user: Any) -> None:
    agent.provider, agent.model = choice
    save_agent(agent, by_id=user.pk)


@pytest.mark.slow
def test_there_and_back_with_calls_and_thoughts() -> None:
    claude = [
        looks("CLAUDE-1"),
        Turn("One.", thinking="CLAUDE-2"),
        looks("CLAUDE-3"),
        Turn("Three."),
    ]
    gpt = [looks("GPT-1"), Turn("Two.", thinking="GPT-2")]
    user = make_user()
    with both(claude, gpt) as (anthropic, openai):
        agent = make_agent(user, provider=ANTHROPIC[0], model=ANTHROPIC[1])
        first = drive_to_end(start_run(user, "Begin"))
        on(agent, OPENAI, user)
        second = drive_to_end(start_run(user, "Go on", thread=first.thread_id))
        on(agent, ANTHROPIC, user)
        third = drive_to_end(start_run(user, "And back", thread=first.thread_id))
    for run in (first, second, third):
        assert run.status == "completed", run.error_message
    assert anthropic.violations == []
    assert openai.violations == []
    assert [epoch.provider for epoch in Epoch.objects.order_by("number")] == [
        "anthropic",
        "openai-responses",
        "anthropic",
    ]
    told = [request.body.decode() for request in openai.requests]
    assert len(told) == 2
    assert not any("CLAUDE" in body or "signature" in body for body in told)
    assert all("Begin" in body and "One." in body and "Go on" in body for body in told)
    assert len(items_of(openai.requests[0], "function_call")) == 2
    assert len(items_of(openai.requests[0], "function_call_output")) == 2
    # Within the epoch, a server gets its own thinking blocks back unchanged.
    assert items_of(openai.requests[0], "reasoning") == []
    assert [item["summary"][0]["text"] for item in items_of(openai.requests[1], "reasoning")] == [
        "GPT-1"
    ]
    back = [request.body.decode() for request in anthropic.requests[2:]]
    assert len(back) == 2
    assert not any(
        word in body for body in back for word in ("GPT", "encrypted", "origin", "gAAAA")
    )
    assert not any("CLAUDE-1" in body or "CLAUDE-2" in body for body in back)
    assert "Two." in back[0]
    assert "CLAUDE-3" in back[1]
    heads = [(epoch.provider, epoch.head["model"]) for epoch in Epoch.objects.order_by("number")]
    assert heads == [ANTHROPIC, OPENAI, ANTHROPIC]


def test_each_server_gets_only_its_own_key() -> None:
    user = make_user()
    with both([Turn("One.")], [Turn("Two.")]) as (anthropic, openai):
        agent = make_agent(user, provider=ANTHROPIC[0], model=ANTHROPIC[1])
        first = drive_to_end(start_run(user))
        on(agent, OPENAI, user)
        drive_to_end(start_run(user, thread=first.thread_id))
    assert "key-of-openai" not in str(anthropic.requests[0].headers)
    assert "key-of-anthropic" not in str(openai.requests[0].headers)
    assert (anthropic.violations, openai.violations) == ([], [])


@pytest.mark.slow
def test_a_call_that_waits_is_ended_by_the_model_that_made_it() -> None:
    """The run pins its agent version: a switch during an approval applies to the next run."""
    asks = Turn("I write.", [ToolUse("write_file", {"path": "/a", "content": "x"})], "CLAUDE-1")
    user = make_user()
    with both([asks, Turn("Written.")], [Turn("Two.")]) as (anthropic, openai), running_worker():
        agent = make_agent(
            user, provider=ANTHROPIC[0], model=ANTHROPIC[1], interrupt_on={"write_file": True}
        )
        run = wait_for_status(start_run(user), "waiting")
        on(agent, OPENAI, user)
        request = ApprovalRequest.objects.get()
        decide_approval(request.pk, DecisionRequest("approve", request.digest), by=user)
        ended = wait_for_status(run, "completed", "failed")
        second = wait_for_status(
            start_run(user, "Go on", thread=run.thread_id), "completed", "failed"
        )
    assert (ended.status, second.status) == ("completed", "completed"), second.error_message
    assert (len(anthropic.requests), len(openai.requests)) == (2, 1)
    assert (anthropic.violations, openai.violations) == ([], [])
    assert len(items_of(openai.requests[0], "function_call_output")) == 1


@pytest.mark.slow
def test_another_server_under_the_same_agent_is_sent_no_thoughts() -> None:
    """No new version and so no new epoch: opaque blocks go only to the server that created them."""
    user = make_user()
    with both([], [looks("GPT-1"), Turn("One.", thinking="GPT-2")]) as (_, openai):
        make_agent(user, provider=OPENAI[0], model=OPENAI[1])
        first = drive_to_end(start_run(user, "Begin"))
    assert openai.violations == []
    with both([], [Turn("Two.")]) as (_, other):
        second = drive_to_end(start_run(user, "Go on", thread=first.thread_id))
    assert second.status == "completed", second.error_message
    assert other.violations == []
    assert Epoch.objects.count() == 1
    assert items_of(other.requests[0], "reasoning") == []
    assert "One." in other.requests[0].body.decode()


def test_the_protocols_of_openai_are_two_providers() -> None:
    user = make_user()
    with both([], [looks("R-1"), Turn("One.")]) as (_, responses):
        agent = make_agent(user, provider=OPENAI[0], model=OPENAI[1])
        first = drive_to_end(start_run(user, "Begin"))
    with both([], [looks("C-1"), Turn("Two.")], ChatServer) as (_, chat):
        on(agent, ("openai", "local"), user)  # Chat Completions, for other servers
        second = drive_to_end(start_run(user, "Go on", thread=first.thread_id))
    assert (first.status, second.status) == ("completed", "completed"), second.error_message
    assert (responses.violations, chat.violations) == ([], [])
    assert "R-1" not in chat.requests[1].body.decode()
    assert '"reasoning_content":"C-1"' in chat.requests[1].body.decode()


def test_the_usage_of_each_reply_is_counted_and_paid() -> None:
    user = make_user()
    usage = {"input": 10_000, "cache_read": 8_000, "output": 500, "reasoning": 400}
    with both([], [Turn("One.", usage=usage)]):
        make_agent(user, provider=OPENAI[0], model=OPENAI[1])
        run = drive_to_end(start_run(user))
    row = Message.objects.get(role="assistant")
    assert (row.input_tokens, row.cache_read_tokens, row.output_tokens) == (2_000, 8_000, 500)
    assert run.clock.cost_microusd == 2_000 * 2 + 800 + 500 * 10
    [step] = events(run, "step.completed")
    assert step["usage"]["reasoning_tokens"] == 400


@pytest.mark.slow
def test_the_cache_key_identifies_the_thread_without_its_content() -> None:
    user = make_user()
    with both([], [Turn("One."), Turn("Two."), Turn("Three.")]) as (_, openai):
        make_agent(user, provider=OPENAI[0], model=OPENAI[1])
        first = drive_to_end(start_run(user))
        drive_to_end(start_run(user, thread=first.thread_id))
        other = drive_to_end(start_run(user))
    keys = [json.loads(request.body)["prompt_cache_key"] for request in openai.requests]
    assert keys[0] == keys[1] != keys[2]
    assert not any(str(run.thread_id) in key for key in keys for run in (first, other))


def test_opaque_thoughts_are_not_shown_to_people() -> None:
    from agents.api.serializers.transcript import shown_block

    user = make_user()
    with both([], [looks("GPT-1"), Turn("One.")]):
        make_agent(user, provider=OPENAI[0], model=OPENAI[1])
        run: Run = drive_to_end(start_run(user))
    blocks = [block for row in Message.objects.filter(run=run) for block in json.loads(row.content)]
    assert "gAAAA" in json.dumps(blocks)
    assert "gAAAA" not in json.dumps([shown_block(block) for block in blocks])
    assert "gAAAA" not in json.dumps(events(run))
