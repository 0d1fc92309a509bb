"""Guardrails, hooks and retries of an agent in a program."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import transaction

from agents import toolkits
from agents.features.guardrails.public import (
    Decision,
    GuardContext,
    Guardrail,
    HookContext,
    Hooks,
    allow,
    block,
)
from agents.models import Agent, EndedRun, Run
from agents.services.errors import Conflict
from agents.services.runs.control import resume_run
from agents.services.runs.ends import note_end, take_ended_run
from tests.agents.sdk.conftest import MakeAgent
from tests.support import guards
from tests.support.runs import wait_until
from vel import (
    HarnessConfig,
    RunFailed,
    RunInterrupted,
    SetupError,
    VelHarness,
    create_deep_agent,
    create_harness,
    scripted_model,
    tool,
)


class NoPrices(Guardrail):
    """Prices stay here."""

    name = "no-prices"

    def check_input(self, context: GuardContext, text: str) -> Decision:
        return block("prices stay here") if "price" in text else allow()

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Decision:
        return block("prices stay here") if "price" in str(given) else allow()


class OnlyMessages(Guardrail):
    name = "only-messages"

    def check_input(self, context: GuardContext, text: str) -> Decision:
        return block("prices stay here") if "price" in text else allow()


class NeedsArgument(NoPrices):
    def __init__(self, word: str) -> None:
        self.word = word


class Told(Hooks):
    def __init__(self) -> None:
        self.points: list[str] = []

    def run_started(self, context: HookContext) -> None:
        self.points.append("run_started")

    async def before_tool(
        self, context: HookContext, call_id: str, tool: str, given: dict[str, Any]
    ) -> None:
        self.points.append(f"before_tool {tool}")

    def run_ended(self, context: HookContext, status: str, code: str, message: str) -> None:
        self.points.append(f"run_ended {status}{code and ' ' + code}")


@tool(requires_approval=True)
def send(text: str) -> str:
    """Send a letter."""
    return f"sent {text}"


SENDS = [{"tool_calls": [("send", {"text": "the price"})]}, "Done."]
ASKS = [{"tool_calls": [("send", {"text": "hello"})]}, "Sent."]


async def collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


@pytest.mark.slow
@pytest.mark.parametrize("given", [NoPrices, NoPrices()], ids=["class", "instance"])
def test_a_guardrail_of_the_program_decides(make_agent: MakeAgent, given: Any) -> None:
    agent = make_agent(SENDS, tools=[send], guardrails=[given])
    with pytest.raises(RunFailed, match="The guardrail no-prices blocked the message"):
        asyncio.run(agent.run("What is the price?"))
    events = asyncio.run(collect(agent.run_stream("Write")))
    [result] = [event for event in events if event.type == "tool_result"]
    assert result.content == "prices stay here"
    assert not [event for event in events if event.type == "interrupt"]


def test_a_subagent_has_the_guardrails_of_its_agent(make_agent: MakeAgent) -> None:
    delegates = {"tool_calls": [("task", {"subagent": "general", "task": "tell the price"})]}
    agent = make_agent([delegates, "Done.", "The child answers."], guardrails=[OnlyMessages])
    events = asyncio.run(collect(agent.run_stream("Go")))
    [result] = [event for event in events if event.type == "tool_result"]
    assert "The guardrail only-messages blocked the message" in result.content


def test_registered_guardrails_are_chosen_by_name(make_agent: MakeAgent) -> None:
    with guards.registered(guardrails=("NoWord", "Everywhere")):
        agent = make_agent(["ok"], guardrails=["no-word", "secrets", NoPrices])
        asyncio.run(agent.run("Hello"))
        assert Agent.objects.get().definition["guardrails"] == [
            "no-word",
            "secrets",
            "python:no-prices",
        ]
        assert [kind for kind, *_ in guards.seen].count("input") == 2
        with pytest.raises(SetupError, match="guardrails: 'nobody' is not registered"):
            asyncio.run(make_agent(["ok"], guardrails=["nobody"], name="b").run("Hello"))

        class Taken(NoPrices):
            name = "no-word"

        with pytest.raises(SetupError, match="of a registered guardrail"):
            asyncio.run(make_agent(["ok"], guardrails=[Taken], name="c").run("Hello"))


def test_hooks_of_the_program_are_called_after_those_of_the_settings(make_agent: MakeAgent) -> None:
    told = Told()
    with guards.registered(hooks=("Ends",)):
        agent = make_agent(ASKS, tools=[send], hooks=[told], interrupt_on={"send": False})
        asyncio.run(agent.run("Write"))
        agent.close()
        assert told.points == ["run_started", "before_tool send", "run_ended completed"]
        assert [kind for kind, *_ in guards.seen] == ["run_ended"]
    assert not EndedRun.objects.exists()


@pytest.mark.slow
def test_hooks_hear_of_the_end_while_the_program_runs(make_agent: MakeAgent) -> None:
    told = Told()
    agent = make_agent(["ok"], hooks=[told])
    asyncio.run(agent.run("Hello"))
    wait_until(lambda: "run_ended completed" in told.points, "the hook's call")


@pytest.mark.slow
def test_another_process_leaves_the_end_of_a_run_to_its_program(make_agent: MakeAgent) -> None:
    told = Told()
    agent = make_agent(["ok"], hooks=[told])
    asyncio.run(agent.run("Hello", session_id="s"))
    agent.close()
    run = Run.objects.get()
    with transaction.atomic():
        note_end(run)
        assert take_ended_run() is None  # no hook is bound here now
    told.points.clear()
    again = make_agent(["ok"], hooks=[told])
    asyncio.run(again.run("Hello", session_id="s"))
    again.close()
    assert told.points.count("run_ended completed") == 2


@pytest.mark.slow
def test_a_guarded_run_continues_in_the_same_process(make_agent: MakeAgent) -> None:
    told = Told()

    def agent() -> Any:
        return make_agent(ASKS, tools=[send], guardrails=[NoPrices], hooks=[told])

    first = agent()
    with pytest.raises(RunInterrupted):
        asyncio.run(first.run("Write", session_id="s"))
    first.close()
    again = agent()
    events = asyncio.run(collect(again.resume("s")))
    assert events[-1].type == "end"
    assert "before_tool send" in told.points


@pytest.mark.parametrize("option", ["guardrails", "hooks"])
def test_a_program_without_the_guardrail_or_hook_does_not_continue(
    make_agent: MakeAgent, option: str
) -> None:
    given = {"guardrails": [NoPrices], "hooks": [Told()]}[option]
    first = make_agent(ASKS, tools=[send], **{option: given})
    with pytest.raises(RunInterrupted):
        asyncio.run(first.run("Write", session_id="s"))
    first.close()
    run = Run.objects.get()
    without = make_agent(ASKS, tools=[send])
    for answer in (None, {"text": "changed"}):
        with pytest.raises(
            Conflict, match="uses code that the agent of this program does not have"
        ):
            asyncio.run(collect(without.resume("s", answer)))
    run.refresh_from_db()
    assert run.status == "waiting"
    without.close()
    assert toolkits.bound(run.thread_id) is None
    Run.objects.update(status="failed")  # as after an error
    with pytest.raises(Conflict, match="of the Python program that started it"):
        resume_run(run.pk)


def test_a_process_without_the_guardrails_ends_the_run(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent(["ok"], guardrails=[NoPrices])
    monkeypatch.setattr(toolkits, "bind", lambda *_: None)  # as in a process without the program
    with pytest.raises(RunFailed, match="tools or other code of the Python program") as failed:
        asyncio.run(agent.run("What is the price?"))
    assert failed.value.code == "toolkit_missing"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"guardrails": NoPrices}, "guardrails: give a list of"),
        (
            {"guardrails": [Told]},
            "guardrails: Told is not a subclass of Guardrail of agents.features",
        ),
        (
            {"guardrails": [3]},
            "guardrails: int 3 is not a subclass of Guardrail of agents.features",
        ),
        ({"guardrails": [NeedsArgument]}, "NeedsArgument cannot be made without arguments"),
        ({"guardrails": [guards.Lazy]}, "guardrails: Lazy checks nothing"),
        ({"guardrails": [guards.Unnamed]}, "guardrails: Unnamed has the name ''"),
        ({"guardrails": [NoPrices, NoPrices()]}, "'no-prices' is given twice"),
        ({"hooks": [NoPrices]}, "hooks: NoPrices is not a subclass of Hooks of agents.features"),
        ({"hooks": [guards.Idle]}, "hooks: Idle has no hook"),
        ({"hooks": "Told"}, "hooks: give a list of"),
        ({"tool_retries": [{"tool": "execute_sql"}]}, "tool_retries: number 1: attempts"),
        ({"tool_retries": ["execute_sql"]}, "tool_retries: number 1"),
        ({"tool_retries": {"tool": "ls"}}, "tool_retries: give a list of"),
    ],
)
def test_wrong_types_are_reported_when_the_agent_is_created(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(SetupError) as at_agent:
        create_deep_agent(**options)
    assert told in str(at_agent.value)
    with pytest.raises(SetupError) as at_harness:
        create_harness(**options)
    assert told in str(at_harness.value)


def test_a_call_that_reads_is_made_again(make_agent: MakeAgent) -> None:
    tries: list[int] = []

    @tool(effect="read")
    def look() -> str:
        """Look."""
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("away")
        return "there"

    rules = [{"tool": "look", "attempts": 3, "backoff": 0}]
    agent = make_agent([{"tool_calls": [("look", {})]}, "Done."], tools=[look], tool_retries=rules)
    events = asyncio.run(collect(agent.run_stream("Go")))
    assert [event.content for event in events if event.type == "tool_result"] == ["there"]
    assert len(tries) == 3


@pytest.mark.django_db(transaction=True)
def test_a_harness_takes_them_as_fields() -> None:
    told = Told()
    model = scripted_model(ASKS, "guarded-harness")
    config = HarnessConfig(
        model=model, sandbox=False, guardrails=[NoPrices], hooks=[told],
        tool_retries=[{"tool": "*", "attempts": 2}],
    )  # fmt: skip

    async def use() -> None:
        async with VelHarness(config) as harness:
            with pytest.raises(RunFailed, match="no-prices"):
                await harness.run("the price")

    asyncio.run(use())
    assert told.points == ["run_ended failed guardrail_input"]
    assert Agent.objects.get().definition["tool_retries"] == [
        {"tool": "*", "attempts": 2, "backoff": 1.0}
    ]
