"""The AI SDK parts of runs with approvals, and of failed runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.events.projections.ui import DEFAULT_VERSION, ui_chunks
from agents.models import Run
from agents.selectors.chats import outcome_events
from vel import HarnessConfig, RunFailed, SetupError, VelHarness, scripted_model, tool

MakeHarness = Callable[..., VelHarness]


@tool(requires_approval=True)
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@pytest.fixture
def make_harness(transactional_db: None) -> Iterator[MakeHarness]:
    made: list[VelHarness] = []

    def make(turns: Any, **config: Any) -> VelHarness:
        options = {"tools": [send], "include_builtin_skills": False}
        model = scripted_model(turns, "harness-streams")
        made.append(VelHarness(HarnessConfig(model, sandbox=False, options=options, **config)))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


async def collect(stream: Any) -> list[dict[str, Any]]:
    return [part async for part in stream]


def text_of(parts: list[dict[str, Any]]) -> str:
    return "".join(part["delta"] for part in parts if part["type"] == "text-delta")


def parent_and_child(messages: list[Any]) -> Any:
    """The parent delegates, the child sends a letter."""
    is_child = messages[0]["content"][0]["text"] == "Write a letter"
    called = any(block["type"] == "tool_use" for m in messages for block in m["content"])
    if is_child:
        return "The child's answer" if called else {"tool_calls": [("send", {"to": "bob"})]}
    delegate = {"tool_calls": [("task", {"subagent": "general", "task": "Write a letter"})]}
    return "The parent's answer" if called else delegate


@pytest.mark.slow
def test_the_answer_follows_the_approval_of_a_subagents_call(make_harness: MakeHarness) -> None:
    harness = make_harness(parent_and_child)

    async def use() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return await collect(harness.run_stream("Go", "s")), await collect(harness.resume("s"))

    before, after = asyncio.run(use())
    run = Run.objects.get(parent=None)
    assert (after[0]["type"], after[0]["messageId"]) == ("start", run.pk)
    assert text_of(after) == "The parent's answer"
    assert after[-1]["type"] == "finish"
    [task] = [part["toolCallId"] for part in before if part["type"] == "tool-input-available"]
    assert [p["toolCallId"] for p in after if p["type"] == "tool-output-available"] == [task]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "kind"), [(True, "tool-output-available"), ("No", "tool-output-denied")]
)
def test_the_result_of_a_call_follows_the_decision(
    make_harness: MakeHarness, value: Any, kind: str
) -> None:
    harness = make_harness([{"tool_calls": [("send", {"to": "bob"})]}, "Done."])

    async def use() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return (
            await collect(harness.run_stream("Go", "s")),
            await collect(harness.resume("s", value)),
        )

    before, after = asyncio.run(use())
    [call] = [part["toolCallId"] for part in before if part["type"] == "tool-input-available"]
    assert [part["toolCallId"] for part in after if part["type"] == kind] == [call]
    assert text_of(after) == "Done."


ASKED = {5: "data-tool-approval", 6: "tool-approval-request", 7: "tool-approval-request"}
DENIED = {5: "tool-output-error", 6: "tool-output-denied", 7: "tool-output-denied"}


@pytest.mark.parametrize("version", [None, 5, 7])
def test_a_harness_streams_the_version_of_rest_or_the_one_that_it_is_given(
    make_harness: MakeHarness, version: int | None
) -> None:
    given = {} if version is None else {"ai_sdk_version": version}
    version = version or DEFAULT_VERSION
    harness = make_harness([{"tool_calls": [("send", {"to": "bob"})]}, "Done."], **given)

    async def use() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return (
            await collect(harness.run_stream("Go", "s")),
            await collect(harness.resume("s", "No")),
        )

    before, after = asyncio.run(use())
    for parts in (before, after):
        assert parts[0]["messageMetadata"] == {"aiSdkVersion": version}
        assert [part["type"] for part in parts].count("start") == 1
    assert ASKED[version] in [part["type"] for part in before]
    # A client of version 6 and later answers in its next request.
    assert (before[-1]["type"] == "finish") == (version > 5)
    assert DENIED[version] in [part["type"] for part in after]
    assert after[-1]["type"] == "finish"
    run = Run.objects.get()
    rest = list(ui_chunks(run.pk, outcome_events([run.pk]), version))
    joined = [part for part in (*before, *after) if part["type"] not in ("start", "finish")]
    assert without_steps(joined) == without_steps(
        [part for part in rest if part["type"] not in ("start", "finish")]
    )


def without_steps(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the ends of steps, which depend on where a response ends, and pieces of texts."""
    return [part for part in parts if part["type"] not in ("finish-step", "text-delta")]


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(SetupError, match="ai_sdk_version must be one of 5, 6, 7"):
        HarnessConfig(ai_sdk_version=4)


def test_resume_and_reject_of_a_harness_can_be_awaited(make_harness: MakeHarness) -> None:
    harness = make_harness([{"tool_calls": [("send", {"to": "bob"})]}, "Done."] * 2)

    async def use() -> str:
        await collect(harness.run_stream("Go", "s"))
        answer = await harness.resume("s")
        await collect(harness.run_stream("Go", "s"))
        assert await harness.reject("s", "Not now") is None
        return answer

    assert asyncio.run(use()) == "Done."
    assert Run.objects.order_by("number").last().status == "cancelled"


def test_a_rejection_closes_the_call_and_aborts(make_harness: MakeHarness) -> None:
    harness = make_harness(parent_and_child)

    async def use() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        before = await collect(harness.run_stream("Go", "s"))
        return before, await collect(harness.reject("s", "Not now"))

    before, after = asyncio.run(use())
    assert after[0]["messageId"] == Run.objects.get(parent=None).pk
    [call] = [part["toolCallId"] for part in before if part["type"] == "tool-input-available"]
    assert [p["toolCallId"] for p in after if p["type"] == "tool-output-error"] == [call]
    assert after[-1]["type"] == "abort"


def test_another_process_continues_the_stream(make_harness: MakeHarness) -> None:
    turns = [{"tool_calls": [("send", {"to": "bob"})]}, "Done."]

    async def ask() -> None:
        harness = make_harness(turns)
        await collect(harness.run_stream("Go", "s"))
        await harness.aclose()

    async def go_on() -> list[dict[str, Any]]:
        return await collect(make_harness(turns).resume("s"))

    asyncio.run(ask())
    parts = asyncio.run(go_on())
    assert [part["type"] for part in parts][-1] == "finish"
    assert "tool-output-available" in [part["type"] for part in parts]


def test_a_failed_run_ends_with_an_error_and_a_finish(make_harness: MakeHarness) -> None:
    harness = make_harness(
        [{"tool_calls": [("ls", {})]}, {"tool_calls": [("ls", {})]}], max_turns=1
    )
    parts: list[dict[str, Any]] = []

    async def use() -> None:
        async for part in harness.run_stream("Go", "s"):
            parts.append(part)

    with pytest.raises(RunFailed):
        asyncio.run(use())
    assert [part["type"] for part in parts][-2:] == ["error", "finish"]


def test_an_immediately_refused_call_is_a_call_and_a_result(make_harness: MakeHarness) -> None:
    harness = make_harness([{"tool_calls": [("nosuch", {"a": 1}), ("send", {})]}, "Done."])

    async def use() -> list[Any]:
        return [event async for event in harness.agent.run_stream("Go", "s")]

    events = [e for e in asyncio.run(use()) if e.type in ("tool_call", "tool_result")]
    assert [(event.type, event.metadata["tool_name"]) for event in events] == [
        ("tool_call", "nosuch"), ("tool_result", "nosuch"),
        ("tool_call", "send"), ("tool_result", "send"),
    ]  # fmt: skip
    assert events[0].metadata["input"] == {"a": 1}
    assert [events[n].metadata["code"] for n in (1, 3)] == ["unknown_tool", "invalid_input"]
