"""Model calls over any wire from synchronous tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from agents.providers.base import (
    Block,
    Conversation,
    ModelEvent,
    PromptHead,
    Provider,
    ProviderError,
    Reply,
)
from tests.agents.providers.contract.wires import KEY, Wire
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Turn

LS: Block = {
    "name": "ls",
    "description": "List a directory.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
NOW: Block = {"name": "now", "description": "", "input_schema": {"type": "object"}}


def head_for(wire: Wire, **changes: Any) -> PromptHead:
    fields: dict[str, Any] = {
        "model": wire.model,
        "system": "You are a careful clerk.",
        "tools": (LS, NOW),
    }
    return PromptHead(**(fields | changes))


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def result(call_id: str, content: str | list[Block] = "ok", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | more


def calls_of(reply: Reply) -> list[Block]:
    return [block for block in reply.blocks if block["type"] == "tool_use"]


def say(conversation: Conversation, *blocks: Block) -> None:
    conversation.append("user", dump(blocks))


def answer(conversation: Conversation, reply: Reply) -> None:
    """Append the reply as the engine does."""
    if reply.blocks:
        conversation.append("assistant", dump(reply.blocks))


def dump(blocks: Sequence[Block]) -> str:
    return json.dumps(list(blocks), ensure_ascii=False, separators=(",", ":"))


class Talk:
    """One conversation with one server; a context manager. Every request must be valid."""

    def __init__(
        self, wire: Wire, turns: Sequence[Turn], head: PromptHead | None = None, **server: Any
    ) -> None:
        self.wire = wire
        self.head = head or head_for(wire)
        self.server: MessagesServer = wire.server(turns, api_key=KEY, **server)
        self.options: dict[str, Any] = {}

    def __enter__(self) -> Talk:
        self.server.__enter__()
        self.provider: Provider = self.wire.provider(self.server, **self.options)
        self.conversation = self.provider.conversation(self.head)
        return self

    def __exit__(self, *error: Any) -> None:
        self.server.__exit__(*error)
        if error == (None, None, None):
            assert self.server.violations == []

    def events(self) -> list[ModelEvent]:
        """Return all events of one call, without appending its reply."""

        async def call() -> list[ModelEvent]:
            try:
                return [event async for event in self.provider.stream(self.conversation)]
            finally:
                await self.provider.close()

        return asyncio.run(call())

    def ask(self, *blocks: Block) -> Reply:
        """Send this message, and append the reply."""
        if blocks:
            say(self.conversation, *blocks)
        reply = self.events()[-1]
        assert isinstance(reply, Reply)
        answer(self.conversation, reply)
        return reply


def events_of(wire: Wire, turn: Turn, head: PromptHead | None = None) -> list[ModelEvent]:
    with Talk(wire, [turn], head) as talk:
        say(talk.conversation, text("Hello"))
        return talk.events()


def reply_of(wire: Wire, turn: Turn, head: PromptHead | None = None) -> Reply:
    reply = events_of(wire, turn, head)[-1]
    assert isinstance(reply, Reply)
    return reply


def failure(wire: Wire, turn: Turn, **options: Any) -> ProviderError:
    """Return the error of a call when the server plays this turn."""
    talk = Talk(wire, [turn])
    talk.options = options
    with talk, pytest.raises(ProviderError) as caught:
        talk.ask(text("Hello"))
    return caught.value
