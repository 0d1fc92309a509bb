"""Every fault of a program's function becomes a result for the model."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import OperationalError
from pydantic import BaseModel

from agents.models import Run
from tests.agents.engine.invariants import check_run
from tests.agents.sdk.conftest import MakeAgent
from tests.support.hang import HANG
from tests.support.runs import events, make_user
from vel import StreamEvent, ToolContext, tool


class Point(BaseModel):
    x: int


@dataclass
class Money:
    amount: Decimal


def results(agent: Any) -> list[StreamEvent]:
    async def collect() -> list[StreamEvent]:
        return [e async for e in agent.run_stream("Go") if e.type == "tool_result"]

    return asyncio.run(collect())


def test_errors_are_results_and_the_run_continues(make_agent: MakeAgent) -> None:
    def raises() -> None:
        """Raise."""
        raise LookupError("no such order")

    def leaves() -> None:
        """Leave."""
        raise SystemExit(3)

    async def leaves_async() -> None:
        """Leave, from the program's own loop."""
        raise KeyboardInterrupt

    def database() -> None:
        """Fail like the engine's own database."""
        raise OperationalError("database is locked")

    async def cancels() -> None:
        """Cancel itself."""
        raise asyncio.CancelledError

    def odd() -> object:
        """Return what JSON has not."""
        return threading.Lock()

    def nan() -> float:
        """Return what JSON has not."""
        return float("nan")

    tools = [raises, leaves, leaves_async, database, cancels, odd, nan]
    calls = [(one.__name__, {}) for one in tools] + [("raises", {"extra": 1}), ("unknown", {})]
    agent = make_agent([{"tool_calls": calls}, "Done."], tools=tools)
    found = results(agent)
    assert len(found) == len(calls)
    by_name = {event.metadata["tool_name"]: event for event in found[:7]}
    told = {event.metadata["tool_name"]: event.content for event in found}
    assert all(event.metadata["is_error"] for name, event in by_name.items() if name != "nan")
    assert any("LookupError: no such order" in event.content for event in found)
    assert "locked" in told["database"]
    assert "SystemExit" in told["leaves"]
    assert "KeyboardInterrupt" in told["leaves_async"]
    assert "is not JSON" in told["odd"]
    assert Run.objects.get().status == "completed"


def test_results_of_a_function_become_text_or_json(make_agent: MakeAgent) -> None:
    values = {
        "text": "as it is",
        "nothing": None,
        "number": 3,
        "model": Point(x=1),
        "money": Money(Decimal("1.50")),
        "mixed": [Point(x=2), date(2026, 1, 2), {"a"}, (1, 2)],
    }

    def get(name: str) -> Any:
        """Get a value."""
        return values[name]

    calls = [("get", {"name": name}) for name in values]
    found = results(make_agent([{"tool_calls": calls}, "ok"], tools=[get]))
    assert [event.content for event in found] == [
        "as it is",
        "[no output]",
        "3",
        '{"x":1}',
        '{"amount":"1.50"}',
        '[{"x":2},"2026-01-02",["a"],[1,2]]',
    ]


def test_a_function_that_hangs_is_given_up(make_agent: MakeAgent) -> None:
    over = threading.Event()

    @tool(timeout=0.2)
    def hangs() -> None:
        """Hang."""
        over.wait(HANG)

    @tool(timeout=0.2)
    async def sleeps() -> None:
        """Sleep."""
        await asyncio.sleep(60)

    turns = [{"tool_calls": [("hangs", {}), ("sleeps", {})]}, "Done."]
    try:
        found = results(make_agent(turns, tools=[hangs, sleeps]))
    finally:
        over.set()
    assert [event.metadata["code"] for event in found] == ["timeout", "timeout"]
    assert "0.2 s" in found[0].content


def test_a_parameter_called_timeout_is_the_functions_own(make_agent: MakeAgent) -> None:
    def wait(timeout: str) -> str:
        """Say how long."""
        return timeout

    found = results(
        make_agent([{"tool_calls": [("wait", {"timeout": "long"})]}, "ok"], tools=[wait])
    )
    assert found[0].content == "long"


def test_a_function_gets_the_user_of_the_run(make_agent: MakeAgent) -> None:
    ada = make_user(first_name="Ada")

    def who(context: ToolContext, greeting: str = "Dear") -> str:
        """Say who asks."""
        context.progress("looking")
        seen.append(context)
        return f"{greeting} {context.user.first_name}"

    seen: list[ToolContext] = []
    agent = make_agent([{"tool_calls": [("who", {})]}, "ok"], tools=[who], user=ada)
    assert results(agent)[0].content == "Dear Ada"
    run = Run.objects.get()
    assert (seen[0].run_id, seen[0].thread_id) == (run.pk, run.thread_id)
    assert seen[0].session_id == agent.last_session_id
    # The model cannot fill this parameter.
    head = run.thread.epochs.get().head
    told = next(one for one in head["tools"] if one["name"] == "who")
    assert set(told["input_schema"]["properties"]) == {"greeting"}

    def switch_off() -> str:
        """Switch the account off."""
        User.objects.filter(pk=ada.pk).update(is_active=False)
        return "off"

    turns = [{"tool_calls": [("switch_off", {}), ("who", {})]}, "ok"]
    agent = make_agent(turns, tools=[switch_off, who], user=ada, name="second")
    found = results(agent)
    assert "switched off" in found[1].content
    assert len(seen) == 1


def test_progress_after_the_end_of_a_call_is_ignored(make_agent: MakeAgent) -> None:
    def first(context: ToolContext) -> str:
        """Return immediately, and leave work to a thread."""
        seen.append(context)
        context.progress("in time")
        return "first"

    def second(context: ToolContext) -> str:
        """Report progress of the first call."""
        seen[0].progress("too late")
        context.progress("in time")
        return "second"

    seen: list[ToolContext] = []
    agent = make_agent(
        [{"tool_calls": [("first", {})]}, {"tool_calls": [("second", {})]}, "ok"],
        tools=[first, second],
    )
    assert [one.content for one in results(agent)] == ["first", "second"]
    run = Run.objects.get()
    progress = [event["text"] for event in events(run, "tool.progress")]
    assert progress == ["in time", "in time"]
    check_run(run)
