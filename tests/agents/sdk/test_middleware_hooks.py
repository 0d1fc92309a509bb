"""Hooks of an agent's middleware in a program."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agents.services.errors import Conflict
from tests.agents.sdk.conftest import MakeAgent
from vel import BaseMiddleware, RunInterrupted, SetupError, ToolAnswer, tool


class Shouts(BaseMiddleware):
    async def wrap_tool_call(self, call: Any, handler: Any) -> ToolAnswer:
        answer = await handler()
        return replace(answer, text=answer.text.upper())


@tool(requires_approval=True)
def send(text: str) -> str:
    """Send a letter."""
    return f"sent {text}"


SENDS = [{"tool_calls": [("send", {"text": "hello"})]}, "Sent."]


async def collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


@pytest.mark.slow
def test_a_run_continues_only_with_the_same_middleware(make_agent: MakeAgent) -> None:
    first = make_agent(SENDS, tools=[send], middleware=[Shouts()])
    with pytest.raises(RunInterrupted):
        asyncio.run(first.run("Write", session_id="s"))
    first.close()
    without = make_agent(SENDS, tools=[send])
    with pytest.raises(Conflict, match="uses code that the agent of this program does not have"):
        asyncio.run(collect(without.resume("s")))
    without.close()
    again = make_agent(SENDS, tools=[send], middleware=[Shouts()])
    events = asyncio.run(collect(again.resume("s")))
    assert [event.content for event in events if event.type == "tool_result"] == ["SENT HELLO"]


def test_a_hook_that_cannot_work_is_an_error(make_agent: MakeAgent) -> None:
    class Blocks(BaseMiddleware):
        def wrap_tool_call(self, call: Any, handler: Any) -> Any:
            return None

    with pytest.raises(SetupError, match=r"Blocks\.wrap_tool_call is not an async def"):
        make_agent(SENDS, tools=[send], middleware=[Blocks()])
