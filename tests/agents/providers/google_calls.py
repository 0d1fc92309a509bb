"""Calls of the Gemini API from synchronous tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agents.providers.base import ModelEvent, PromptHead, ProviderError, Reply
from agents.providers.google.provider import GoogleProvider
from tests.agents.providers.calls import LS, events_of, said
from tests.support.google_api import GoogleServer
from tests.support.messages_script import Turn

MODEL = "gemini-3.8-flash"
HEAD = PromptHead(model=MODEL, system="You are a careful clerk.", tools=(LS,))


def provider_for(server: GoogleServer, **options: Any) -> GoogleProvider:
    return GoogleProvider("test-key-of-google", server.url, **options)


def ask(server: GoogleServer, head: PromptHead = HEAD, **options: Any) -> list[ModelEvent]:
    async def call() -> list[ModelEvent]:
        provider = provider_for(server, **options)
        conversation = provider.conversation(head)
        conversation.append("user", said("Hello"))
        try:
            return await events_of(provider, conversation)
        finally:
            await provider.close()

    return asyncio.run(call())


def answer(turns: Sequence[Turn], head: PromptHead = HEAD) -> Reply:
    with GoogleServer(turns) as server:
        reply = ask(server, head)[-1]
    assert server.violations == []
    assert isinstance(reply, Reply)
    return reply


def failure(turns: Sequence[Turn], **options: Any) -> ProviderError:
    with GoogleServer(turns) as server, pytest.raises(ProviderError) as caught:
        ask(server, **options)
    return caught.value
