"""Model calls from synchronous tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import (
    Conversation,
    ModelEvent,
    PromptHead,
    Provider,
    ProviderError,
    Reply,
    Role,
)
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Turn

MODEL = "claude-sonnet-5-5"
LS = {
    "name": "ls",
    "description": "List a directory.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
HEAD = PromptHead(model=MODEL, system="You are a careful clerk.", tools=(LS,))


def provider_for(server: MessagesServer, **options: Any) -> AnthropicProvider:
    """Return a provider that calls this server."""
    return AnthropicProvider("test-key", server.url, **options)


def said(text: str) -> str:
    """Return the blocks of a user message with this text."""
    return json.dumps([{"type": "text", "text": text}])


def add(conversation: Conversation, role: Role, *blocks: dict[str, Any]) -> None:
    """Append blocks as the engine does."""
    conversation.append(role, json.dumps(blocks))


def add_results(conversation: Conversation, reply: Reply, content: str = "ok") -> None:
    """Append a reply and one result for each of its calls."""
    add(conversation, "assistant", *reply.blocks)
    add(
        conversation,
        "user",
        *(
            {"type": "tool_result", "tool_use_id": block["id"], "content": content}
            for block in reply.blocks
            if block["type"] == "tool_use"
        ),
    )


async def events_of(provider: Provider, conversation: Conversation) -> list[ModelEvent]:
    """Return all events of one call."""
    return [event async for event in provider.stream(conversation)]


async def reply_of(provider: Provider, conversation: Conversation) -> Reply:
    """Return the reply of one call."""
    reply = (await events_of(provider, conversation))[-1]
    assert isinstance(reply, Reply)
    return reply


def ask(
    server: MessagesServer, head: PromptHead = HEAD, text: str = "Hello", **options: Any
) -> list[ModelEvent]:
    """Send one message to the model of this server; return the events."""

    async def call() -> list[ModelEvent]:
        provider = provider_for(server, **options)
        conversation = provider.conversation(head)
        conversation.append("user", said(text))
        try:
            return await events_of(provider, conversation)
        finally:
            await provider.close()

    return asyncio.run(call())


def answer(turns: Sequence[Turn], head: PromptHead = HEAD, **options: Any) -> Reply:
    """Return the reply when the model plays these turns, and check the request."""
    with MessagesServer(turns) as server:
        reply = ask(server, head, **options)[-1]
    assert server.violations == []
    assert isinstance(reply, Reply)
    return reply


def failure(turns: Sequence[Turn], **options: Any) -> ProviderError:
    """Return the error of a call when the model plays these turns."""
    with MessagesServer(turns) as server, pytest.raises(ProviderError) as caught:
        ask(server, **options)
    assert server.violations == []
    return caught.value
