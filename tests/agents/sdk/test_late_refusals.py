"""The rows of a result are refused, because the data has changed since the tool's own check."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agents.models import Agent, ToolCall
from agents.sdk.environment.process import engine
from memory.models import MemoryRevision
from tests.agents.sdk.conftest import MakeAgent
from tests.support.memory import remembered
from vel import BaseMiddleware

PATH, TEXT = "knowledge/tea.md", "Ada likes tea.\n"
CALL = ("write_memory", {"path": PATH, "content": TEXT, "reason": "It was said."})


class Rival(BaseMiddleware):
    """Another run saves the same text after the tool's check, before its result is stored."""

    async def wrap_tool_call(self, call: Any, handler: Callable[[], Awaitable[Any]]) -> Any:
        result = await handler()
        await engine.call(lambda: remembered(Agent.objects.get(), tea=TEXT))
        return result


def test_the_call_fails_with_the_reason_and_the_run_goes_on(make_agent: MakeAgent) -> None:
    agent = make_agent(
        [{"tool_calls": [CALL]}, "Done."],
        middleware=[Rival()],
        memory=True,
        options={"memory_saving": "save"},
    )
    assert asyncio.run(agent.run("Remember it")) == "Done."
    assert MemoryRevision.objects.count() == 1
    call = ToolCall.objects.get()
    assert call.is_error
    assert "already has this content" in call.result
