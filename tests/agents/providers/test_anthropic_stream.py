"""Replies that arrive complete."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing
from dataclasses import replace

from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import ModelLimits, PartDelta, PartStarted, Reply, Usage
from tests.agents.providers.calls import (
    HEAD,
    LS,
    MODEL,
    add_results,
    answer,
    ask,
    provider_for,
    reply_of,
    said,
)
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Fault, ToolUse, Turn, tool_loop


def test_text_streams_in_pieces_that_make_up_the_reply() -> None:
    with MessagesServer([Turn("Good morning, dear reader.", pieces=5)]) as server:
        *parts, reply = ask(server)
    assert server.violations == []
    assert parts[0] == PartStarted(0, "text")
    texts = [part.text for part in parts[1:] if isinstance(part, PartDelta)]
    assert len(texts) == 5
    assert "".join(texts) == "Good morning, dear reader."
    assert isinstance(reply, Reply)
    assert reply.blocks == [{"type": "text", "text": "Good morning, dear reader."}]
    assert (reply.stop_reason, reply.model) == ("end_turn", MODEL)


def test_text_in_any_script_survives_being_cut_anywhere() -> None:
    text = "naïve 你好 🙂🙃 שלום — e\u0301\u2028 end"
    assert answer([Turn(text, pieces=40)]).blocks == [{"type": "text", "text": text}]


def test_parallel_tool_calls_keep_their_order_and_inputs() -> None:
    uses = (ToolUse("ls", {"path": "/a"}), ToolUse("ls", {"path": "/b"}), ToolUse("ls"))
    with MessagesServer([Turn("Looking.", uses)]) as server:
        *parts, reply = ask(server)
    assert isinstance(reply, Reply)
    assert reply.stop_reason == "tool_use"
    calls = reply.blocks[1:]
    assert [call["input"] for call in calls] == [{"path": "/a"}, {"path": "/b"}, {}]
    assert len({call["id"] for call in calls}) == 3
    started = [part for part in parts if isinstance(part, PartStarted) and part.tool]
    assert [(part.index, part.call_id) for part in started] == [
        (index, call["id"]) for index, call in enumerate(calls, start=1)
    ]
    assert reply.broken_inputs == {}


def test_thinking_goes_back_as_it_came() -> None:
    turns = [
        Turn(
            "Let me see.", [ToolUse("ls")], thinking="First I list.", redacted_thinking="c2VjcmV0"
        ),
        Turn(tool_uses=[ToolUse("ls")], thinking=""),
        Turn("Done."),
    ]

    async def loop(server: MessagesServer) -> Reply:
        provider = provider_for(server)
        conversation = provider.conversation(replace(HEAD, thinking={"type": "adaptive"}))
        conversation.append("user", said("Hello"))
        first = await reply_of(provider, conversation)
        assert first.blocks[0]["thinking"] == "First I list."
        assert first.blocks[1] == {"type": "redacted_thinking", "data": "c2VjcmV0"}
        add_results(conversation, first)
        second = await reply_of(provider, conversation)
        assert second.blocks[0]["thinking"] == ""
        assert second.blocks[0]["signature"]
        add_results(conversation, second)
        return await reply_of(provider, conversation)

    with MessagesServer(turns) as server:
        reply = asyncio.run(loop(server))
    assert server.violations == []
    assert reply.blocks == [{"type": "text", "text": "Done."}]


def test_thinking_is_shown_as_reasoning() -> None:
    with MessagesServer([Turn("Yes.", thinking="Is it? It is.")]) as server:
        parts = ask(server)
    reasoning = [part for part in parts if isinstance(part, PartDelta) and part.kind == "reasoning"]
    assert "".join(part.text for part in reasoning) == "Is it? It is."


def test_empty_text_does_not_go_into_the_reply() -> None:
    reply = answer([Turn("  \n", [ToolUse("ls")])])
    assert [block["type"] for block in reply.blocks] == ["tool_use"]


def test_an_input_that_is_not_json_is_kept_as_text() -> None:
    for broken in ('{"path": "/a', "[1, 2]", '{"n": NaN}', '{"s": "\\ud800"}', "[" * 100_000):
        reply = answer([Turn(tool_uses=[ToolUse("ls", broken), ToolUse("ls", {"path": "/b"})])])
        call, sound = reply.blocks
        assert call["input"] == {}
        assert reply.broken_inputs == {call["id"]: broken}
        assert sound["input"] == {"path": "/b"}


def test_stop_reasons_are_handed_on() -> None:
    for reason in ("max_tokens", "refusal", "model_context_window_exceeded", "pause_turn"):
        assert answer([Turn("Half a sent", stop_reason=reason)]).stop_reason == reason


def test_usage_is_the_server_s() -> None:
    usage = {
        "input_tokens": 12,
        "output_tokens": 34,
        "cache_read_input_tokens": 56,
        "cache_creation_input_tokens": 78,
    }
    assert answer([Turn("Hi", usage=usage)]).usage == Usage(12, 34, 56, 78)


def test_the_head_is_sent_as_the_api_names_it() -> None:
    head = replace(
        HEAD, max_tokens=4096, thinking={"type": "adaptive", "display": "summarized"}, effort="high"
    )
    with MessagesServer([Turn("Hi")]) as server:
        ask(server, head)
    assert server.violations == []
    request = server.requests[0]
    assert request.headers["authorization"] == "Bearer test-key"
    assert request.json["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert request.json["output_config"] == {"effort": "high"}
    assert request.json["max_tokens"] == 4096
    assert request.json["tools"] == [LS]
    assert request.json["stream"] is True
    assert "temperature" not in request.json


def test_a_temperature_asks_for_the_api_version_that_takes_it() -> None:
    with MessagesServer([Turn("Hi")]) as server:
        ask(server, replace(HEAD, temperature=0.2))
    assert server.violations == []
    assert server.requests[0].headers["anthropic-version"] == "2023-06-01"


def test_a_prompt_without_system_and_tools_is_in_order() -> None:
    assert answer([Turn("Hi")], replace(HEAD, system="", tools=())).stop_reason == "end_turn"
    assert answer([Turn("Hi")], replace(HEAD, system="")).stop_reason == "end_turn"


def test_closing_in_mid_stream_closes_the_connection() -> None:
    async def close_early(server: MessagesServer) -> None:
        provider = provider_for(server)
        conversation = provider.conversation(HEAD)
        conversation.append("user", said("Hello"))
        async with aclosing(provider.stream(conversation)) as stream:
            async for event in stream:
                if isinstance(event, PartDelta):
                    break
        assert server.wait_for(gone=1), "closed before the loop runs again"

    with MessagesServer([Turn("A long story.", fault=Fault("hang_mid_stream"))]) as server:
        asyncio.run(close_early(server))


def test_cancelling_a_call_closes_the_connection() -> None:
    async def cancel(server: MessagesServer) -> None:
        provider = provider_for(server)
        conversation = provider.conversation(HEAD)
        conversation.append("user", said("Hello"))
        call = asyncio.create_task(reply_of(provider, conversation))
        assert await asyncio.to_thread(server.wait_for, requests=1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled()
        assert server.wait_for(gone=1), "closed before the loop runs again"

    for kind in ("hang_before_headers", "hang_mid_stream"):
        with MessagesServer([Turn("A long story.", fault=Fault(kind))]) as server:
            asyncio.run(cancel(server))


def test_turns_share_a_connection() -> None:
    async def ten_turns(server: MessagesServer) -> None:
        provider = provider_for(server)
        conversation = provider.conversation(HEAD)
        conversation.append("user", said("Hello"))
        for _ in range(10):
            add_results(conversation, await reply_of(provider, conversation))

    with MessagesServer(tool_loop(100)) as server:
        asyncio.run(ten_turns(server))
    assert len(server.requests) == 10
    assert server.accepted == 1


def test_one_provider_serves_one_event_loop_after_the_other() -> None:
    with MessagesServer([Turn("One."), Turn("Two.")]) as server:
        provider = provider_for(server)

        async def call() -> str:
            conversation = provider.conversation(HEAD)
            conversation.append("user", said("Hello"))
            text: str = (await reply_of(provider, conversation)).blocks[0]["text"]
            return text

        assert [asyncio.run(call()), asyncio.run(call())] == ["One.", "Two."]


def test_connections_of_ended_event_loops_do_not_pile_up() -> None:
    with MessagesServer([Turn("Hi")] * 5) as server:
        provider = provider_for(server)

        async def call() -> None:
            conversation = provider.conversation(HEAD)
            conversation.append("user", said("Hello"))
            await reply_of(provider, conversation)

        for _ in range(5):
            asyncio.run(call())
        gc.collect()
        assert server.accepted == 5
        assert server.wait_for(closed=4)


def test_limits_come_from_the_server_and_else_from_the_data_file() -> None:
    async def limits(provider: AnthropicProvider, *models: str) -> list[ModelLimits]:
        return [await provider.limits(model) for model in models]

    told = {MODEL: {"max_input_tokens": 500_000, "max_tokens": 9_000}}
    with MessagesServer([], models=told) as server:
        provider = provider_for(server)
        found = asyncio.run(limits(provider, MODEL, "claude-haiku-4-5", "my-own-model"))
        assert asyncio.run(limits(provider, MODEL, "claude-haiku-4-5", "my-own-model")) == found
        assert len(server.models_asked) == 3, "a server that does not know is not asked again"
    assert found == [ModelLimits(500_000, 9_000), ModelLimits(200_000, 64_000), ModelLimits()]


def test_limits_of_a_server_that_is_away_come_from_the_data_file() -> None:
    with MessagesServer([]) as server:
        provider = provider_for(server)
    assert asyncio.run(provider.limits(MODEL)) == ModelLimits(1_000_000, 128_000)
