"""Decisions with `resume`: only approved calls run."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from agents.models import ApprovalRequest
from agents.sdk.environment.process import engine
from agents.services.errors import ServiceError
from agents.states import ApprovalStatus
from memory.models import MemoryFile
from tests.agents.sdk.conftest import MakeAgent
from vel import Conflict, NotFound, RunInterrupted, tool

called: list[tuple[str, str]] = []

ONE = [{"tool_calls": [("send", {"to": "bob", "text": "hi"})]}, "Done."]
TWO = [{"tool_calls": [("send", {"to": name, "text": "hi"}) for name in ("bob", "eve")]}, "Done."]


@tool(requires_approval=True, effect="read")  # so no call makes another request stale
def send(to: str, text: str = "") -> str:
    """Send a letter."""
    called.append((to, text))
    return f"sent to {to}"


@pytest.fixture(autouse=True)
def _nothing_called() -> None:
    called.clear()


async def collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


async def ask(agent: Any, session: str) -> list[str]:
    """Send a message and return the ids of the pending requests."""
    with pytest.raises(RunInterrupted) as stopped:
        await agent.run("Write", session)
    return [event.metadata["approval_id"] for event in stopped.value.interrupts]


def decisions() -> list[str]:
    return list(ApprovalRequest.objects.order_by("pk").values_list("decision", flat=True))


@pytest.mark.parametrize(
    ("value", "decision", "ran"),
    [
        (None, "approve", [("bob", "hi")]),
        (True, "approve", [("bob", "hi")]),
        ("approve", "approve", [("bob", "hi")]),
        (False, "reject", []),
        ("reject", "reject", []),
        ("Not to him", "reject", []),
        ({"to": "ann"}, "edit", [("ann", "hi")]),
    ],
)
def test_a_clear_value_decides_the_request(
    make_agent: MakeAgent, value: Any, decision: str, ran: list[tuple[str, str]]
) -> None:
    agent = make_agent(ONE, tools=[send])

    async def use() -> list[Any]:
        await ask(agent, "s")
        return await collect(agent.resume("s", value))

    assert asyncio.run(use())[-1].type == "end"
    assert decisions() == [decision]
    assert called == ran


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "is not a decision"),
        (0, "is not a decision"),
        (1, "is not a decision"),
        ("", "is not a decision"),
        ("yes", "is not a decision"),
        ("Approve", "is not a decision"),
        (b"approve", "is not a decision"),
        (1.0, "is not a decision"),
        ({}, "changes nothing"),
        ({"too": "ann"}, "too: Extra inputs are not permitted"),
        ({"approved": False}, "approved: Extra inputs are not permitted"),
        ({"decisions": [{"type": "approve"}]}, "decisions: Extra inputs are not permitted"),
        ({5: "ann"}, "must be texts"),
        ({"0" * 26: False}, "is not pending"),
    ],
)
def test_an_unclear_value_is_refused_and_the_request_continues_to_wait(
    make_agent: MakeAgent, value: Any, message: str
) -> None:
    agent = make_agent(ONE, tools=[send])

    async def use() -> None:
        await ask(agent, "s")
        with pytest.raises(ServiceError, match=message):
            await collect(agent.resume("s", value))

    asyncio.run(use())
    assert decisions() == [""]
    assert called == []


def test_several_requests_need_a_decision_each(make_agent: MakeAgent) -> None:
    agent = make_agent(TWO, tools=[send])

    async def use() -> None:
        first, second = await ask(agent, "s")
        for unclear in (None, {"to": "ann"}, {first: True, "to": "ann"}, {first: True, second: []}):
            with pytest.raises(ServiceError):
                await collect(agent.resume("s", unclear))
        assert await engine.call(decisions) == ["", ""]
        events = await collect(agent.resume("s", {first: False}))
        waiting = [event for event in events if event.type == "interrupt"]
        assert [event.metadata["approval_id"] for event in waiting] == [second]
        assert await engine.call(decisions) == ["reject", ""]
        with pytest.raises(ServiceError, match="is not pending"):
            await collect(agent.resume("s", {first: True, second: True}))
        await collect(agent.resume("s", {second: {"text": "bye"}}))

    asyncio.run(use())
    assert called == [("eve", "bye")]


def test_true_approves_all_requests_that_were_displayed(make_agent: MakeAgent) -> None:
    agent = make_agent(TWO, tools=[send])

    async def use() -> None:
        await ask(agent, "s")
        await collect(agent.resume("s", True))

    asyncio.run(use())
    assert sorted(called) == [("bob", "hi"), ("eve", "hi")]


def a_value(
    chance: random.Random, ids: list[str], waiting: set[str]
) -> tuple[Any, set[tuple[str, str]]]:
    """Return a value for `resume`, and the calls that it approves if it is accepted."""
    names = ("bob", "eve")
    last = {(name, "hi") for key, name in zip(ids, names, strict=True) if waiting == {key}}
    originals = {(name, "hi") for name in names}
    simple = [True, "approve", False, "no", None, 0, 1, [], "", "yes", ["approve"], {}]
    if chance.random() < 0.3:
        value = chance.choice(simple)
        if value is None:
            return value, last
        return value, originals if value is True or value == "approve" else set()
    by_id: dict[str, Any] = {}
    approved: set[tuple[str, str]] = set()
    for key, name in zip(ids, names, strict=True):
        if chance.random() < 0.3:
            continue
        edit = {chance.choice(["to", "text", "txt", "approved"]): chance.choice(["x", "y", False])}
        by_id[key] = chance.choice([*simple, edit])
        if by_id[key] is True or by_id[key] == "approve":
            approved.add((name, "hi"))
        elif by_id[key] is edit:
            approved.add((str(edit.get("to", name)), str(edit.get("text", "hi"))))
    if chance.random() < 0.1:
        by_id["0" * 26] = True
    return by_id, approved


@pytest.mark.slow_cases
@pytest.mark.parametrize("sessions", [6, 30])
def test_no_call_runs_with_an_input_that_was_not_approved(
    make_agent: MakeAgent, sessions: int
) -> None:
    agent = make_agent(TWO, tools=[send])
    chance = random.Random(5)

    async def use() -> None:
        for number in range(sessions):
            session = f"s{number}"
            ids = await ask(agent, session)
            approved: set[tuple[str, str]] = set()
            called.clear()
            for _ in range(4):
                before = set(await engine.call(waiting, ids))
                value, allowed = a_value(chance, ids, before)
                try:
                    await collect(agent.resume(session, value))
                    approved |= allowed
                except ServiceError:
                    assert set(await engine.call(waiting, ids)) == before, value
                assert set(called) <= approved, value

    asyncio.run(use())


def waiting(ids: list[str]) -> list[str]:
    pending = ApprovalRequest.objects.filter(pk__in=ids, status=ApprovalStatus.PENDING)
    return list(pending.values_list("pk", flat=True))


def test_a_program_sees_and_decides_with_its_own_accounts_rights(
    make_agent: MakeAgent,
) -> None:
    given = {"path": "me/food.md", "content": "Likes tea.", "reason": "Tea was named."}
    agent = make_agent([{"tool_calls": [("write_memory", given)]}, "Done."], memory=True)

    async def use() -> list[Any]:
        with pytest.raises(RunInterrupted) as stopped:
            await agent.run("Remember it", "s")
        asked = [*stopped.value.interrupts, *await agent.pending("s")]
        assert await agent.resume("s") == "Done."
        return asked

    first, again = asyncio.run(use())
    for asked in (first, again):
        assert asked.metadata["input"]["content"] == "Likes tea."
    assert MemoryFile.every.get(path="me/food.md").content == "Likes tea."


def test_a_session_that_waits_for_nothing_refuses_both(make_agent: MakeAgent) -> None:
    agent = make_agent(["Done."])

    async def use() -> None:
        await agent.run("Write", "s")
        for stream in (agent.resume("s"), agent.resume("s", True), agent.reject("s")):
            with pytest.raises(Conflict, match=r"There is nothing to re.*'s' is completed"):
                await stream
        with pytest.raises(NotFound):
            await agent.resume("")

    asyncio.run(use())
