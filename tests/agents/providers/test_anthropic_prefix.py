"""Invariant 5: the prompt prefix is byte-stable, and so the prompt cache works."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agents.providers.anthropic.conversation import AnthropicConversation, CacheBreakpoint
from agents.providers.base import Usage
from tests.agents.providers.calls import HEAD, add, add_results, provider_for, reply_of, said
from tests.support.messages_api import MessagesServer
from tests.support.messages_prefix import assert_prefix_stable
from tests.support.messages_script import Script, ToolUse, Turn, by_reply, tool_loop

HEAD_WITH_THINKING = replace(HEAD, thinking={"type": "adaptive"})
MARK = {"type": "ephemeral"}


def play(script: Script, turns: int, cache_breakpoint: CacheBreakpoint) -> tuple[Any, list[Usage]]:
    """Run a tool loop of `turns` turns; return the server and the usage of every turn."""

    async def loop(server: MessagesServer) -> list[Usage]:
        provider = provider_for(server, cache_breakpoint=cache_breakpoint)
        conversation = provider.conversation(HEAD_WITH_THINKING)
        conversation.append("user", said("Hello"))
        usages = []
        for turn in range(turns):
            reply = await reply_of(provider, conversation)
            usages.append(reply.usage)
            add_results(conversation, reply, f"result {turn} " * 20)
            if turn % 7 == 0:
                add(conversation, "user", {"type": "text", "text": "A skill has changed."})
        return usages

    with MessagesServer(script) as server:
        usages = asyncio.run(loop(server))
    assert server.violations == []
    return server, usages


@pytest.mark.slow
@pytest.mark.parametrize("cache_breakpoint", ["top_level", "block", "none"])
def test_fifty_turns_repeat_their_prefix_byte_for_byte(cache_breakpoint: CacheBreakpoint) -> None:
    call = Turn("Next: naïve 🙂", [ToolUse("ls", {"path": "/"})] * 2, thinking="Hm.")
    server, _ = play(by_reply([call] * 50), 50, cache_breakpoint)
    assert_prefix_stable(server.requests)


@pytest.mark.parametrize("cache_breakpoint", ["top_level", "block"])
def test_every_turn_reads_the_cache_of_the_turn_before(
    cache_breakpoint: CacheBreakpoint,
) -> None:
    _, usages = play(tool_loop(99), 20, cache_breakpoint)
    for earlier, later in pairwise(usages):
        assert later.cache_read == pytest.approx(earlier.cache_read + earlier.cache_write, abs=2)
        assert later.input <= 1


@pytest.mark.parametrize("cache_breakpoint", ["top_level", "block"])
def test_a_turn_with_many_calls_still_finds_the_cache(cache_breakpoint: CacheBreakpoint) -> None:
    many = Turn(tool_uses=[ToolUse("ls", {"path": f"/{n}"}) for n in range(30)])
    _, usages = play(by_reply([many] * 3), 3, cache_breakpoint)
    assert usages[2].cache_read == pytest.approx(
        usages[1].cache_read + usages[1].cache_write, abs=2
    )


def test_without_breakpoints_nothing_is_cached() -> None:
    server, usages = play(tool_loop(9), 3, "none")
    assert all(usage.cache_read == usage.cache_write == 0 for usage in usages)
    assert all(b"cache_control" not in request.body for request in server.requests)


def conversation_with(cache_breakpoint: CacheBreakpoint) -> AnthropicConversation:
    conversation = AnthropicConversation(HEAD, cache_breakpoint)
    conversation.append("user", said("one"))
    conversation.append("assistant", said("two"))
    conversation.append("user", said("three"))
    return conversation


def test_the_breakpoints_are_where_this_request_and_the_last_one_end() -> None:
    request = json.loads(conversation_with("block").body())
    marked = [message["content"][-1].get("cache_control") for message in request["messages"]]
    assert marked == [MARK, None, MARK]
    assert request["system"][-1]["cache_control"] == MARK
    assert "cache_control" not in request

    request = json.loads(conversation_with("top_level").body())
    marked = [message["content"][-1].get("cache_control") for message in request["messages"]]
    assert marked == [MARK, None, None]
    assert request["cache_control"] == MARK


def test_a_conversation_that_ends_in_a_reply_gets_no_mark_on_it() -> None:
    conversation = AnthropicConversation(HEAD, "block")
    conversation.append("user", said("one"))
    add(conversation, "assistant", {"type": "redacted_thinking", "data": "x"})
    request = json.loads(conversation.body())
    assert request["messages"][1]["content"] == [{"type": "redacted_thinking", "data": "x"}]
    assert request["messages"][0]["content"][-1]["cache_control"] == MARK


def test_the_tools_are_marked_without_a_system_prompt() -> None:
    conversation = AnthropicConversation(replace(HEAD, system=""), "block")
    conversation.append("user", said("one"))
    assert json.loads(conversation.body())["tools"][-1]["cache_control"] == MARK
    assert "cache_control" not in HEAD.tools[-1]


def test_neighbours_of_one_role_are_one_message() -> None:
    conversation = AnthropicConversation(HEAD, "none")
    conversation.append("user", said("one"))
    conversation.append("user", ' [ {"type":"text","text":"two"} , {"type":"text","text":"]"} ]\n')
    conversation.append("assistant", said("three"))
    messages = json.loads(conversation.body())["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert [block["text"] for block in messages[0]["content"]] == ["one", "two", "]"]


def test_making_a_request_twice_gives_the_same_bytes() -> None:
    conversation = conversation_with("block")
    body = conversation.body()
    assert conversation.body() == body
    conversation.append("assistant", said("four"))
    assert conversation.body() != body


@pytest.mark.parametrize("blocks", ["", "[]", "[ ]", "{}", '"text"', '["text"]', '[{"a":1}', "[1]"])
def test_content_that_is_not_an_array_of_blocks_is_refused(blocks: str) -> None:
    conversation = conversation_with("block")
    body = conversation.body()
    with pytest.raises(ValueError, match="needs a JSON array"):
        conversation.append("user", blocks)
    assert conversation.body() == body


def test_text_that_is_not_unicode_is_refused_and_changes_nothing() -> None:
    conversation = conversation_with("block")
    body = conversation.body()
    with pytest.raises(ValueError, match="surrogates"):
        conversation.append("assistant", '[{"type":"text","text":"\ud800"}]')
    assert conversation.body() == body
