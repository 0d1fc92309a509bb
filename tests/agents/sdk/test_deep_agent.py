"""An agent in a program: messages, streams, questions, and ends."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from agents.models import Agent, Run, Thread, ToolCall
from agents.services.errors import Conflict, InvalidRequest
from agents.services.runs.control import cancel_run, resume_run
from tests.agents.sdk.conftest import MakeAgent
from tests.support.runs import make_user, wait_until
from vel import (
    BaseMiddleware,
    RunCancelled,
    RunFailed,
    RunInterrupted,
    SetupError,
    StreamEvent,
    StreamMode,
    tool,
)

TWO_TURNS = [{"text": "Let me see.", "tool_calls": [("double", {"number": 4})]}, "It is 8."]
called: list[Any] = []


def double(number: int) -> int:
    """Double a number."""
    called.append(number)
    return number * 2


@tool(requires_approval=True)
def send(to: str, text: str = "") -> str:
    """Send a letter."""
    called.append((to, text))
    return f"sent to {to}"


ASKS = [{"text": "Sending.", "tool_calls": [("send", {"to": "bob", "text": "hi"})]}, "Sent."]


@pytest.fixture(autouse=True)
def _nothing_called() -> None:
    called.clear()


async def collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


def types(events: list[StreamEvent]) -> list[str]:
    return [event.type for event in events]


@pytest.mark.slow
def test_a_message_is_answered_and_a_session_continues(make_agent: MakeAgent) -> None:
    agent = make_agent(TWO_TURNS, tools=[double])
    assert asyncio.run(agent.run("Twice four?", session_id="s")) == "It is 8."
    assert asyncio.run(agent.run("And again?", session_id="s")) == "It is 8."
    asyncio.run(agent.run("Something else?"))
    assert called == [4, 4, 4]
    assert Thread.objects.count() == 2
    thread = Thread.objects.get(key="s")
    assert [run.number for run in thread.runs.order_by("number")] == [1, 2]
    assert set(thread.runs.values_list("source", flat=True)) == {"python"}
    assert agent.last_session_id != "s"


def test_every_mode_streams_the_run_in_its_format(make_agent: MakeAgent) -> None:
    agent = make_agent(TWO_TURNS, tools=[double])

    async def stream(mode: Any) -> list[Any]:
        return await collect(agent.run_stream("Twice four?", mode=mode))

    events = asyncio.run(stream(StreamMode.EVENTS))
    assert types(events) == [
        "start", "token", "step", "tool_call", "tool_result", "token", "step", "end",
    ]  # fmt: skip
    call = events[3]
    assert call.metadata["tool_name"] == "double"
    assert call.metadata["input"] == {"number": 4}
    assert (events[4].content, events[4].metadata["is_error"]) == ("8", False)
    assert events[-1].content == "It is 8."
    values = asyncio.run(stream("values"))
    assert [message["role"] for message in values[-1]["messages"]] == [
        "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert [block["type"] for block in values[-1]["messages"][2]["content"]] == ["tool_result"]
    assert (values[-1]["status"], values[-1]["response"]) == ("completed", "It is 8.")
    updates = asyncio.run(stream("updates"))
    names = [name for update in updates for name in update]
    assert names == ["agent", "agent", "tools", "agent", "end"]
    assert updates[0]["agent"]["text"] == "Let me see."
    messages = asyncio.run(stream("messages"))
    assert [text for text, _ in messages] == ["Let me see.", "It is 8."]
    rows = asyncio.run(stream("debug"))
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    with pytest.raises(SetupError, match=r"^mode must be .*nonsense"):
        asyncio.run(stream("nonsense"))


def test_a_question_pauses_and_an_approval_continues(make_agent: MakeAgent) -> None:
    agent = make_agent(ASKS, tools=[send])

    async def use() -> tuple[list[StreamEvent], list[StreamEvent]]:
        asked = await collect(agent.run_stream("Write to Bob", session_id="s"))
        return asked, await collect(agent.resume("s"))

    asked, then = asyncio.run(use())
    question = asked[-1]
    assert question.type == "interrupt"
    assert question.metadata["tool_name"] == "send"
    assert question.metadata["input"] == {"to": "bob", "text": "hi"}
    assert question.metadata["session_id"] == "s"
    assert types(then)[-1] == "end"
    assert "start" not in types(then)
    assert called == [("bob", "hi")]


@pytest.mark.slow
def test_run_raises_its_pending_request_and_a_modified_state_is_an_edit(
    make_agent: MakeAgent,
) -> None:
    agent = make_agent(ASKS, tools=[send])

    async def use() -> None:
        with pytest.raises(RunInterrupted, match="send") as stopped:
            await agent.run("Write to Bob", session_id="s")
        assert stopped.value.interrupts[0].metadata["input"]["to"] == "bob"
        with pytest.raises(InvalidRequest):
            await collect(agent.resume("s", modified_state={"wrong": 1}))
        assert called == []
        await collect(agent.resume("s", modified_state={"to": "eve"}))

    asyncio.run(use())
    assert called == [("eve", "hi")]
    call = ToolCall.objects.get()
    assert json.loads(call.input)["to"] == "bob"
    assert json.loads(call.edited_input)["to"] == "eve"


def test_reject_ends_the_run_and_nothing_was_called(make_agent: MakeAgent) -> None:
    agent = make_agent(ASKS, tools=[send])

    async def use() -> list[StreamEvent]:
        await collect(agent.run_stream("Write to Bob", session_id="s"))
        assert [item.metadata["tool_name"] for item in await agent.pending("s")] == ["send"]
        return await collect(agent.reject("s", reason="Not him"))

    ended = asyncio.run(use())
    assert types(ended)[-1] == "cancelled"
    assert called == []
    assert Run.objects.get().status == "cancelled"
    call = ToolCall.objects.get()
    assert "Not him" in call.result
    assert asyncio.run(agent.pending("s")) == []


def test_resume_and_reject_can_be_awaited(make_agent: MakeAgent) -> None:
    agent = make_agent([*ASKS, *ASKS], tools=[send])

    async def use() -> None:
        with pytest.raises(RunInterrupted):
            await agent.run("Write to Bob", session_id="s")
        with pytest.raises(InvalidRequest):
            await agent.resume("s", modified_state={"wrong": 1})
        assert await agent.resume("s") == "Sent."
        with pytest.raises(RunInterrupted):
            await agent.run("And again", session_id="s")
        assert await asyncio.wait_for(agent.reject("s", reason="Not again"), 60) is None

    asyncio.run(use())
    assert called == [("bob", "hi")]
    assert Run.objects.order_by("number").last().status == "cancelled"


def test_an_awaited_resume_raises_the_pending_request(make_agent: MakeAgent) -> None:
    both = [("send", {"to": "bob"}), ("send", {"to": "eve"})]
    agent = make_agent([{"tool_calls": both}, "Sent."], tools=[send])

    async def use() -> str:
        with pytest.raises(RunInterrupted) as stopped:
            await agent.run("Write", session_id="s")
        first, second = (item.metadata["approval_id"] for item in stopped.value.interrupts)
        with pytest.raises(RunInterrupted) as still:
            await agent.resume("s", {first: True})
        assert [item.metadata["approval_id"] for item in still.value.interrupts] == [second]
        return second

    second = asyncio.run(use())
    assert asyncio.run(agent.resume("s", {second: False})) == "Sent."
    assert called == [("bob", "")]


def test_an_awaited_resume_that_is_cancelled_cancels_the_run(make_agent: MakeAgent) -> None:
    arrived = threading.Event()

    @tool(effect="read")
    async def hang() -> str:
        """Hang."""
        arrived.set()
        await asyncio.Event().wait()
        return ""

    turns = [{"tool_calls": [("send", {"to": "bob"})]}, {"tool_calls": [("hang", {})]}, "Sent."]
    agent = make_agent(turns, tools=[send, hang])

    async def use() -> None:
        with pytest.raises(RunInterrupted):
            await agent.run("Write", session_id="s")
        task = asyncio.create_task(agent.resume("s"))
        await asyncio.to_thread(arrived.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await agent.aclose()

    asyncio.run(use())
    assert Run.objects.get().status == "cancelled"


@pytest.mark.slow
def test_only_the_shown_call_is_approved(make_agent: MakeAgent) -> None:
    """Two questions, of which a program has seen one: the other is sent, not answered."""

    @tool(requires_approval=True, effect="read")  # so no call makes the next approval stale
    def show(to: str) -> str:
        """Show it."""
        called.append((to, ""))
        return to

    both = [("show", {"to": "bob"}), ("show", {"to": "eve"})]
    agent = make_agent([{"tool_calls": both}, "Shown."], tools=[show])

    async def use() -> None:
        async for event in agent.run_stream("Write", session_id="s"):
            if event.type == "interrupt":
                assert event.metadata["input"]["to"] == "bob"
                break
        then = await collect(agent.resume("s"))
        assert [e.metadata["input"]["to"] for e in then if e.type == "interrupt"] == ["eve"]
        assert called == []  # a turn's calls run after the last decision
        assert [e.metadata["input"]["to"] for e in await agent.pending("s")] == ["eve"]
        await collect(agent.resume("s"))

    asyncio.run(use())
    assert [to for to, _ in called] == ["bob", "eve"]


def test_a_stream_can_be_resumed_within_the_loop_that_reads_it(make_agent: MakeAgent) -> None:
    """Resume within the stream that has sent the interrupt."""
    agent = make_agent(ASKS, tools=[send])

    async def use() -> str:
        said = ""
        async for event in agent.run_stream("Write to Bob", session_id="s"):
            if event.type == "token":
                said += event.content
            elif event.type == "interrupt":
                async for after in agent.resume("s"):
                    said += after.content if after.type == "token" else ""
        return said

    assert asyncio.run(use()) == "Sending.Sent."


def test_leaving_a_stream_cancels_the_run(make_agent: MakeAgent) -> None:
    agent = make_agent([{"text": "One", "tool_calls": [("double", {"number": 1})]},
                        {"text": "Two", "delay": 30}], tools=[double])  # fmt: skip

    async def use() -> None:
        stream = agent.run_stream("Go")
        async for event in stream:
            if event.type == "tool_result":
                break
        await stream.aclose()

    asyncio.run(use())
    run = Run.objects.get()
    wait_until(lambda: Run.objects.get(pk=run.pk).status == "cancelled", "the end of the run")


def test_cancelling_the_caller_cancels_the_run(make_agent: MakeAgent) -> None:
    agent = make_agent([{"text": "One", "delay": 60}])

    async def use() -> None:
        work = asyncio.create_task(agent.run("Go", session_id="s"))
        await asyncio.to_thread(wait_until, Run.objects.filter(status="running").exists)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(use())
    wait_until(lambda: Run.objects.get().status == "cancelled", "the end of the run")


def test_an_immediately_cancelled_caller_leaves_no_run(make_agent: MakeAgent) -> None:
    agent = make_agent([{"text": "One", "delay": 60}])
    asyncio.run(agent.run_stream("Warm up").aclose())

    async def use(steps: int) -> None:
        work = asyncio.create_task(agent.run("Go"))
        for _ in range(steps):
            await asyncio.sleep(0.002)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    for steps in range(0, 20, 2):
        asyncio.run(use(steps))
    active = Run.objects.filter(status__in=("queued", "running"))
    wait_until(lambda: not active.exists(), "the end of the runs")


@pytest.mark.slow
def test_failures_and_cancellations_by_others_are_exceptions(make_agent: MakeAgent) -> None:
    failing = make_agent([{"tool_calls": [("double", {"number": 1})]}] * 9, tools=[double],
                         max_steps=2)  # fmt: skip
    with pytest.raises(RunFailed, match="2 turns") as failed:
        asyncio.run(failing.run("Go"))
    assert failed.value.code == "limit_turns"
    events: list[StreamEvent] = []

    async def stream() -> None:
        async for event in failing.run_stream("Go"):
            events.append(event)

    with pytest.raises(RunFailed):
        asyncio.run(stream())
    assert types(events)[-1] == "error"

    slow = make_agent([{"text": "x", "delay": 60}], name="slow")

    async def cancelled() -> None:
        work = asyncio.create_task(slow.run("Go", session_id="c"))
        running = Run.objects.filter(thread__key="c", status="running")
        await asyncio.to_thread(wait_until, running.exists)
        run = await asyncio.to_thread(running.get)
        await asyncio.to_thread(cancel_run, run.pk, by="ada", reason="enough")
        with pytest.raises(RunCancelled, match="enough"):
            await work

    asyncio.run(cancelled())


@pytest.mark.slow
def test_agents_of_one_process_work_concurrently_with_their_own_tools(
    make_agent: MakeAgent,
) -> None:
    """Tools with the same names: each run calls the functions of its agent."""

    def version(number: int) -> Any:
        def which() -> int:
            """Say which."""
            return number

        return which

    turns = [{"tool_calls": [("which", {})]}, "Done."]
    agents = [make_agent(turns, tools=[version(number)]) for number in range(5)]

    async def result(agent: Any) -> str:
        events = await collect(agent.run_stream("Which?"))
        return next(event.content for event in events if event.type == "tool_result")

    async def all_results() -> list[str]:
        return await asyncio.gather(*(result(agent) for agent in agents))

    assert asyncio.run(all_results()) == ["0", "1", "2", "3", "4"]
    assert Agent.objects.count() == 1
    assert Agent.objects.get().versions.count() == 1  # the agents have the same definition


def test_coroutines_run_where_the_program_awaits_and_functions_do_not(
    make_agent: MakeAgent,
) -> None:
    places: dict[str, Any] = {}

    async def here() -> str:
        """Say where."""
        places["async"] = (asyncio.get_running_loop(), threading.current_thread())
        return "here"

    def there() -> str:
        """Say where."""
        places["sync"] = threading.current_thread()
        return "there"

    agent = make_agent([{"tool_calls": [("here", {}), ("there", {})]}, "ok"], tools=[here, there])

    async def use() -> None:
        places["own"] = asyncio.get_running_loop()
        await agent.run("Go")

    asyncio.run(use())
    assert places["async"] == (places["own"], threading.main_thread())
    assert places["sync"] is not threading.main_thread()


@pytest.mark.slow
def test_no_other_process_continues_a_run_with_these_tools(make_agent: MakeAgent) -> None:
    agent = make_agent(ASKS, tools=[send])
    with pytest.raises(RunInterrupted):
        asyncio.run(agent.run("Write to Bob", session_id="s"))
    agent.close()
    run = Run.objects.get()
    with pytest.raises(Conflict, match=r"agent\.resume"):
        resume_run(run.pk)
    # The same agent, as in a program that was restarted.
    again = make_agent(ASKS, tools=[send])
    assert types(asyncio.run(collect(again.resume("s"))))[-1] == "end"
    assert called == [("bob", "hi")]


class Named(BaseMiddleware):
    def __init__(self, name: str) -> None:
        self.name = name


def test_invalid_definitions_are_refused_before_storing(make_agent: MakeAgent) -> None:
    def ls() -> str:
        """Take a name of Vel's."""
        return ""

    for problem, options in {
        "one of Vel's": {"tools": [ls]},
        "Two tools": {"tools": [double, double]},
        "Two middleware are called 'twice': rename": {"middleware": [Named("twice")] * 2},
        r"may have 100 characters.* has 101: shorten": {"middleware": [Named("x" * 101)]},
        "no tool 'nothing'": {"interrupt_on": {"nothing": True}},
        "is no directory": {"skill_dirs": ["/nowhere"]},
        "no user": {"user": "nobody-of-this-name"},
        "the project's settings": {"model": {"provider": "anthropic", "api_key": "k"}},
        "own database is used": {"persistence_path": "/tmp/other.sqlite3"},
        "no API key": {"model": {"provider": "anthropic"}},
    }.items():
        model = options.pop("model", None)  # type: ignore[attr-defined]
        agent = make_agent(["x"], **options)  # type: ignore[arg-type]
        if model:
            agent._runner.config.model = model
        with pytest.raises(SetupError, match=problem):
            asyncio.run(agent.run("Go"))
    assert not Agent.objects.exists()


def test_the_owner_is_the_local_account_or_the_named_user(make_agent: MakeAgent) -> None:
    ada = make_user()
    asyncio.run(make_agent(["x"], user=ada).run("Go"))
    assert Run.objects.get().owner == ada
    local = make_agent(["x"])
    asyncio.run(local.run("Go"))
    owner = Run.objects.order_by("-pk").first().owner  # type: ignore[union-attr]
    assert not owner.has_usable_password()
    owner.set_password("a person's")
    owner.save()
    with pytest.raises(SetupError, match="pass user="):
        asyncio.run(make_agent(["x"]).run("Go"))


def test_context_fills_the_prompt(make_agent: MakeAgent) -> None:
    prompt = "You work for {{context.customer}}."
    agent = make_agent(["x"], system_prompt=prompt)
    asyncio.run(agent.run("Go", session_id="s", context={"customer": "Acme"}))
    epoch = Thread.objects.get().epochs.get()
    assert epoch.head["system"].startswith("You work for Acme.")


def test_a_fallback_model_continues_during_an_outage(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallback = {"provider": "openai", "model": "gpt-6.2-sol"}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    agent = make_agent(["Hello."], fallbacks=[fallback])
    assert asyncio.run(agent.run("hi")) == "Hello."
    assert Agent.objects.get().fallbacks == [fallback]


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        ({"provider": "openai", "model": "gpt-6.2-sol"}, "number 1: .*OPENAI_API_KEY"),
        ({"provider": "openai", "model": ""}, "number 1: give"),
        ({"provider": "openai", "model": "x", "api_key": "y"}, "number 1: give"),
        ({"provider": "nobody", "model": "x"}, "nobody"),
        ("gpt-6.2-sol", "number 1: give"),
    ],
)
def test_an_unusable_fallback_is_an_immediate_error(
    make_agent: MakeAgent, fallback: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SetupError, match=problem):
        asyncio.run(make_agent(["Hello."], fallbacks=[fallback]).run("hi"))
    assert not Run.objects.exists()
