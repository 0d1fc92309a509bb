"""A second message to a session that is busy with an earlier one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.models import Run
from agents.services.errors import Conflict
from tests.agents.sdk.conftest import MakeAgent
from tests.support.runs import wait_until
from vel import (
    RunInterrupted,
    SetupError,
    StreamEvent,
    VelHarness,
    scripted_model,
    tool,
)


def text_of(messages: list[Any]) -> str:
    """Return the text of the newest message of the person."""
    blocks = [block for message in messages for block in message["content"]]
    return str([block["text"] for block in blocks if "text" in block][-1])


class Door:
    """A tool that waits until the test opens it."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def knock(self) -> str:
        """Wait at the door."""
        self.reached.set()
        await self.opened.wait()
        return "open"


def answers(messages: list[Any]) -> Any:
    last = messages[-1]["content"][-1]
    if last["type"] == "tool_result":
        return "The door is open."
    if text_of(messages) == "Knock":
        return {"tool_calls": [("knock", {})]}
    return f"You said {text_of(messages)}."


def test_a_refused_second_message_explains_how_to_wait(make_agent: MakeAgent) -> None:
    async def use() -> None:
        door = Door()
        agent = make_agent(answers, tools=[door.knock])
        first = asyncio.create_task(agent.run("Knock", session_id="s"))
        await door.reached.wait()
        with pytest.raises(Conflict, match="pass queue=True") as refused:
            await agent.run("one", session_id="s")
        assert refused.value.code == "thread_busy"
        with pytest.raises(SetupError, match=r"^queue must be True or False"):
            await agent.run("one", session_id="s", queue="yes")
        door.opened.set()
        assert await first == "The door is open."

    asyncio.run(use())
    assert Run.objects.count() == 1


def test_queued_messages_are_answered_in_their_order(make_agent: MakeAgent) -> None:
    async def use() -> None:
        door = Door()
        agent = make_agent(answers, tools=[door.knock])
        first = asyncio.create_task(agent.run("Knock", session_id="s"))
        await door.reached.wait()
        second = asyncio.create_task(agent.run("one", session_id="s", queue=True))
        await _stored(2)
        third = asyncio.create_task(_events(agent.run_stream("two", session_id="s", queue=True)))
        await _stored(3)
        door.opened.set()
        assert await first == "The door is open."
        assert await second == "You said one."
        end = (await third)[-1]
        assert (end.type, end.content) == ("end", "You said two.")

    asyncio.run(use())
    ended = Run.objects.order_by("ended_at").values_list("number", flat=True)
    assert list(ended) == [1, 2, 3]


def test_a_message_to_an_idle_session_does_not_wait(make_agent: MakeAgent) -> None:
    agent = make_agent(answers)
    assert asyncio.run(agent.run("one", session_id="s", queue=True)) == "You said one."


def test_a_cancelled_caller_cancels_its_queued_message_only(make_agent: MakeAgent) -> None:
    async def use() -> None:
        door = Door()
        agent = make_agent(answers, tools=[door.knock])
        first = asyncio.create_task(agent.run("Knock", session_id="s"))
        await door.reached.wait()
        second = asyncio.create_task(agent.run("one", session_id="s", queue=True))
        await _stored(2)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        door.opened.set()
        assert await first == "The door is open."

    asyncio.run(use())
    statuses = Run.objects.order_by("number").values_list("status", flat=True)
    wait_until(lambda: list(statuses.all()) == ["completed", "cancelled"], "the cancelled message")


@tool(requires_approval=True)
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def asks(messages: list[Any]) -> Any:
    if messages[-1]["content"][-1]["type"] == "tool_result":
        return "Sent."
    if text_of(messages) == "Write":
        return {"tool_calls": [("send", {"to": "bob"})]}
    return f"You said {text_of(messages)}."


@pytest.mark.parametrize("approve", [True, False])
def test_a_decision_is_about_the_message_that_waits(make_agent: MakeAgent, approve: bool) -> None:
    async def use() -> None:
        agent = make_agent(asks, tools=[send])
        with pytest.raises(RunInterrupted):
            await agent.run("Write", session_id="s")
        second = asyncio.create_task(agent.run("one", session_id="s", queue=True))
        await _stored(2)
        (request,) = await agent.pending("s")
        assert request.metadata["tool_name"] == "send"
        if approve:
            assert (await _events(agent.resume("s")))[-1].content == "Sent."
        else:
            await _events(agent.reject("s", "No."))
        assert await second == "You said one."

    asyncio.run(use())
    statuses = Run.objects.order_by("number").values_list("status", flat=True)
    assert list(statuses) == ["completed" if approve else "cancelled", "completed"]


def test_a_harness_queues_as_well(transactional_db: None) -> None:
    async def use() -> None:
        door = Door()
        options = {"tools": [door.knock], "include_builtin_skills": False}
        model = scripted_model(answers, "queued")
        async with VelHarness({"model": model, "sandbox": False, "options": options}) as harness:
            first = asyncio.create_task(harness.run("Knock", session_id="s"))
            await door.reached.wait()
            second = asyncio.create_task(harness.run("one", session_id="s", queue=True))
            await _stored(2)
            door.opened.set()
            assert await first == "The door is open."
            assert await second == "You said one."

    asyncio.run(use())


async def _events(stream: Any) -> list[StreamEvent]:
    return [event async for event in stream]


async def _stored(count: int) -> None:
    """Wait for this number of stored messages."""
    await asyncio.to_thread(wait_until, lambda: Run.objects.count() == count)
