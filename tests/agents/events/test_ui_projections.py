"""Chunks of a run for the versions of the AI SDK: the same rows give the same chunks."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.events.append import dump
from agents.events.projections.ui import DIALECTS, ui_chunks, ui_message
from agents.events.projections.ui_stream import UiStream
from agents.events.stored import StoredEvent

RUN = "r1"
CALLED = ("tool.called", {"call_id": "c1", "tool": "execute", "input": {"command": "ls"}})
ASKED = (
    "approval.requested",
    {
        "approval_id": "a1",
        "call_id": "c1",
        "tool": "execute",
        "input": {"command": "ls"},
        "kind": "tool",
        "prompt": "",
        "digest": "d",
        "allowed_decisions": ["approve", "reject"],
        "expires_at": None,
    },
)
PARKED = ("run.suspended", {"reason": "approval", "approval_ids": ["a1"]})
REJECTED = (
    "approval.decided",
    {"approval_id": "a1", "call_id": "c1", "decision": "reject", "reason": "no", "by": "ada"},
)
DENIED = ("tool.denied", {"call_id": "c1", "reason": "no"})
FAILED = ("run.failed", {"code": "overloaded", "message": "Too busy"})
RESUMED = ("run.resumed", {"reason": "resumed by a person"})
COMPLETED = ("run.completed", {"finish_reason": "end_turn", "usage": {"turns": 1}, "cost": None})

Draft = tuple[str, dict[str, Any]]


def log(*drafts: Draft, run: str = RUN) -> list[StoredEvent]:
    ts = "2026-01-31T12:00:00.000Z"
    return [
        StoredEvent(run, seq, kind, ts, dump(data)) for seq, (kind, data) in enumerate(drafts, 1)
    ]


def told(version: int, *drafts: Draft) -> list[dict[str, Any]]:
    return list(ui_chunks(RUN, log(*drafts), version))


def types(version: int, *drafts: Draft) -> list[str]:
    return [chunk["type"] for chunk in told(version, *drafts)]


def test_unstreamed_text_comes_with_the_complete_part() -> None:
    started = ("text.started", {"part_id": "1.0"})
    delta = ("text.delta", {"part_id": "1.0", "text": "Hel"})
    whole = ("text.completed", {"part_id": "1.0", "text": "Hello"})

    assert types(5, started, delta, whole) == [
        "start", "text-start", "text-delta", "text-delta", "text-end",
    ]  # fmt: skip
    # Compaction can remove deltas, and a guardrail can change the text.
    for drafts in ((whole,), (started, whole), (started, delta, whole), (delta, whole)):
        text = [each["delta"] for each in told(5, *drafts) if each["type"] == "text-delta"]
        assert "".join(text) == "Hello"
    masked = ("text.completed", {"part_id": "1.0", "text": "[hidden]"})
    found = told(5, started, delta, masked)
    assert [each["type"] for each in found[-5:]] == [
        "text-delta", "text-end", "text-start", "text-delta", "text-end",
    ]  # fmt: skip
    assert found[-2]["delta"] == "[hidden]"


def test_parts_of_a_broken_model_call_are_closed_and_not_in_the_history() -> None:
    drafts: list[Draft] = [
        ("step.started", {"step": 1}),
        ("text.delta", {"part_id": "1.0", "text": "Half"}),
        ("tool.input.started", {"call_id": "c0", "tool": "execute"}),
        ("tool.input.delta", {"call_id": "c0", "text": '{"comm'}),
        ("step.reset", {"step": 1, "reason": "overloaded", "code": "529"}),
        ("text.delta", {"part_id": "1.0", "text": "Whole"}),
        ("text.completed", {"part_id": "1.0", "text": "Whole"}),
        COMPLETED,
    ]

    found = told(6, *drafts)
    assert [each["type"] for each in found][6:10] == [
        "text-end", "tool-input-available", "tool-output-error", "data-step-reset",
    ]  # fmt: skip
    message = ui_message(RUN, log(*drafts), 6)
    assert message.parts == [
        {"type": "step-start"},
        {"type": "text", "text": "Whole", "state": "done"},
    ]


def test_the_progress_of_a_tool_is_transient() -> None:
    piece = ("tool.progress", {"call_id": "c1", "text": "half"})
    done = ("tool.completed", {"call_id": "c1", "output": "all"})
    for version in DIALECTS:
        assert told(version, CALLED, piece, done)[2] == {
            "type": "data-tool-progress",
            "data": {"toolCallId": "c1", "text": "half"},
            "transient": True,
        }
        (part,) = ui_message(RUN, log(CALLED, piece, done), version).parts
        assert part["type"] == "tool-execute"


def test_the_text_of_a_fallback_model_is_a_separate_part() -> None:
    fallback = {
        "step": 1, "from_provider": "anthropic", "from_model": "a", "provider": "google",
        "model": "b", "code": "overloaded", "reason": "too busy",
    }  # fmt: skip
    drafts: list[Draft] = [
        ("step.started", {"step": 1}),
        ("text.delta", {"part_id": "1.0", "text": "Half"}),
        ("step.reset", {"step": 1, "reason": "too busy", "code": "overloaded"}),
        ("model.fallback", fallback),
        ("step.started", {"step": 1}),
        ("text.completed", {"part_id": "1.0", "text": "Whole"}),
        COMPLETED,
    ]
    told_of = {name: fallback[name] for name in ("step", "provider", "model", "code", "reason")}
    part = {"type": "data-model-fallback", "id": "1:google:b", "data": told_of}
    assert part in told(6, *drafts)
    parts = ui_message(RUN, log(*drafts), 6).parts
    assert part in parts
    assert {"type": "text", "text": "Half", "state": "done"} not in parts


def test_results_belong_to_the_step_that_called() -> None:
    assert types(
        6,
        ("step.started", {"step": 1}),
        ("step.completed", {"step": 1, "finish_reason": "tool_use", "usage": {}}),
        CALLED,
        ("tool.completed", {"call_id": "c1", "output": "x"}),
        ("step.started", {"step": 2}),
        COMPLETED,
    ) == [
        "start", "start-step", "tool-input-available", "tool-output-available", "finish-step",
        "start-step", "finish-step", "finish",
    ]  # fmt: skip


def test_a_call_that_does_not_fit_is_an_error_in_words_that_all_releases_know() -> None:
    rejected = {"call_id": "c1", "tool": "nope", "input": {}, "message": "There is no such tool."}
    for version in DIALECTS:
        assert types(version, ("tool.rejected", rejected))[1:] == [
            "tool-input-available", "tool-output-error",
        ]  # fmt: skip


def test_approvals_have_the_format_of_each_version() -> None:
    drafts = (CALLED, ASKED, PARKED, REJECTED, RESUMED, DENIED)

    asked, decided, denied = told(5, *drafts)[2:]
    assert asked["type"] == decided["type"] == "data-tool-approval"
    assert asked["id"] == decided["id"] == "a1"
    assert (asked["data"]["decision"], decided["data"]["decision"]) == ("", "reject")
    assert denied == {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no"}
    assert told(6, *drafts)[2:] == [
        {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"},
        {"type": "tool-output-denied", "toolCallId": "c1"},
    ]
    assert told(7, *drafts)[3] == {
        "type": "tool-approval-response",
        "approvalId": "a1",
        "approved": False,
        "reason": "no",
    }


def test_a_call_denied_by_the_policy_is_not_an_approval() -> None:
    for version in DIALECTS:
        assert types(version, CALLED, DENIED)[-1] == "tool-output-error"


@pytest.mark.parametrize(
    ("version", "drafts", "awaits"),
    [
        (6, (CALLED, ASKED), False),
        (6, (CALLED, ASKED, PARKED), True),
        (7, (CALLED, ASKED, PARKED), True),
        (5, (CALLED, ASKED, PARKED), False),
        (6, (CALLED, ASKED, PARKED, REJECTED), False),
        (6, (CALLED, ASKED, PARKED, REJECTED, RESUMED), False),
        (6, (ASKED, PARKED), False),  # no call of this message: the decision is made over REST
        (6, (CALLED, ASKED, ("run.suspended", {"reason": "children"})), False),
        (6, (CALLED, ASKED, PARKED, ("approval.expired", {"approval_id": "a1"})), False),
    ],
)
def test_a_response_ends_where_the_client_must_answer(
    version: int, drafts: tuple[Draft, ...], awaits: bool
) -> None:
    stream = UiStream(RUN, DIALECTS[version])
    for event in log(*drafts):
        stream.feed(event)
    assert stream.awaits_answer is awaits


def test_a_call_with_a_new_request_waits_only_for_its_answer() -> None:
    anew = (ASKED[0], {**ASKED[1], "approval_id": "a2"})
    approved = (REJECTED[0], {**REJECTED[1], "approval_id": "a2", "decision": "approve"})
    stream = UiStream(RUN, DIALECTS[6])
    for event in log(CALLED, ASKED, PARKED, anew):
        stream.feed(event)
    assert stream.awaits_answer
    stream.feed(log(approved)[0])
    assert not stream.awaits_answer


def test_a_subagents_request_is_data_with_its_own_run() -> None:
    for version in DIALECTS:
        stream = UiStream(RUN, DIALECTS[version])
        (_, part) = stream.feed(log(ASKED, run="child")[0])
        assert part["type"] == "data-tool-approval"
        assert part["data"]["runId"] == "child"
        assert stream.feed(log(CALLED, run="child")[0]) == []
        (decided,) = stream.feed(log(REJECTED, run="child")[0])
        assert decided["data"]["decision"] == "reject"


def test_a_run_that_failed_and_went_on_has_not_failed() -> None:
    found = told(6, ("step.started", {"step": 1}), CALLED, FAILED)
    assert [each["type"] for each in found][-4:] == [
        "finish-step", "message-metadata", "error", "finish",
    ]  # fmt: skip
    assert found[-2]["errorText"] == "Too busy"

    assert types(6, ("step.started", {"step": 1}), FAILED, RESUMED, COMPLETED)[-2:] == [
        "finish-step",
        "finish",
    ]
    assert "error" not in types(6, FAILED, RESUMED)


def test_a_cancelled_run_leaves_nothing_open() -> None:
    cancelled = ("run.cancelled", {"by": "ada", "reason": "enough"})
    delta = ("text.delta", {"part_id": "1.0", "text": "x"})
    assert types(6, delta, CALLED, ASKED, PARKED, cancelled)[-4:] == [
        "text-end", "tool-output-error", "message-metadata", "abort",
    ]  # fmt: skip


_CALL = st.sampled_from(["c1", "c2"])
_PART = st.sampled_from(["1.0", "1.1"])
_TEXT = st.text(max_size=3)
_KINDS = st.sampled_from(["text", "reasoning"])
_DRAFTS = st.one_of(
    st.builds(lambda k, p: (f"{k}.started", {"part_id": p}), _KINDS, _PART),
    st.builds(lambda k, p, t: (f"{k}.delta", {"part_id": p, "text": t}), _KINDS, _PART, _TEXT),
    st.builds(lambda k, p, t: (f"{k}.completed", {"part_id": p, "text": t}), _KINDS, _PART, _TEXT),
    st.builds(lambda c: ("tool.input.started", {"call_id": c, "tool": "t"}), _CALL),
    st.builds(lambda c, t: ("tool.input.delta", {"call_id": c, "text": t}), _CALL, _TEXT),
    st.builds(lambda c: ("tool.called", {"call_id": c, "tool": "t", "input": {}}), _CALL),
    st.builds(lambda c: ("tool.progress", {"call_id": c, "text": "p"}), _CALL),
    st.builds(lambda c: ("tool.completed", {"call_id": c, "output": "o"}), _CALL),
    st.builds(lambda c: ("tool.failed", {"call_id": c, "message": "m"}), _CALL),
    st.sampled_from(
        [
            ("step.started", {"step": 1}),
            ("step.reset", {"step": 1, "reason": "r"}),
            CALLED, ASKED, PARKED, REJECTED, DENIED, FAILED, RESUMED, COMPLETED,
        ]
    ),
)  # fmt: skip


@given(st.lists(_DRAFTS, max_size=30), st.sampled_from(sorted(DIALECTS)))
def test_no_log_makes_chunks_that_a_reader_stumbles_over(drafts: list[Draft], version: int) -> None:
    active: set[tuple[str, str]] = set()
    calls: set[str] = set()
    typed: set[str] = set()
    approvals: set[str] = set()
    message = ui_message(RUN, log(*drafts), version)
    for chunk in told(version, *drafts):
        assert "\n" not in dump(chunk)
        assert None not in chunk.values()
        kind: str = chunk["type"]
        if kind.startswith(("text-", "reasoning-")):
            part = (kind.split("-")[0], chunk["id"])
            assert kind.endswith("-start") or part in active, chunk
            (active.discard if kind.endswith("-end") else active.add)(part)
        elif kind in ("tool-input-start", "tool-input-available"):
            calls.add(chunk["toolCallId"])
            typed.add(chunk["toolCallId"])
        elif kind == "tool-input-delta":
            assert chunk["toolCallId"] in typed
        elif kind == "tool-approval-response":
            assert chunk["approvalId"] in approvals
        elif kind.startswith("tool-"):
            assert chunk["toolCallId"] in calls, chunk
            approvals.add(chunk.get("approvalId", ""))
    json.loads(dump(message.as_dict()))


def broken_off(count: int) -> list[Draft]:
    """Return a reply of `count` pieces that was never complete."""
    pieces = [("text.delta", {"part_id": "1.0", "text": "x" * 400})] * count
    return [("step.started", {"step": 1}), *pieces, FAILED]


def asked_often(count: int) -> list[Draft]:
    """Return `count` calls of a subagent, each with an approval request."""
    drafts: list[Draft] = [("step.started", {"step": 1})]
    for number in range(count):
        ids = {"call_id": f"c{number}", "approval_id": f"a{number}"}
        drafts += [
            (CALLED[0], {**CALLED[1], **ids}),
            (ASKED[0], {**ASKED[1], **ids}),
            (REJECTED[0], {**REJECTED[1], **ids}),
            ("subagent.started", {"child_run_id": f"r{number}", "name": "x", **ids}),
            (DENIED[0], {**DENIED[1], **ids}),
        ]
    return [*drafts, COMPLETED]


@pytest.mark.parametrize("make", [broken_off, asked_often])
def test_a_message_of_many_events_takes_linear_time(make: Any) -> None:
    def seconds(count: int) -> float:
        events = log(*make(count))
        begun = time.process_time()
        message = ui_message(RUN, events, 7)
        assert len(json.dumps(message.as_dict())) > 100 * count
        return time.process_time() - begun

    count = 2_000 if make is broken_off else 500
    short = min(seconds(count) for _ in range(3))
    assert min(seconds(4 * count) for _ in range(3)) < 8 * short + 0.1


def test_a_call_of_an_earlier_step_is_found_when_a_later_step_is_made_again() -> None:
    again = {"call_id": "c1", "tool": "execute", "input": {}}
    drafts: list[Draft] = [
        ("step.started", {"step": 1}),
        CALLED,
        ("step.started", {"step": 2}),
        ("tool.called", again),
        ("subagent.started", {"child_run_id": "r2", "name": "x", "call_id": "c1"}),
        ("step.reset", {"step": 2, "reason": "overloaded", "code": "529"}),
        ("subagent.started", {"child_run_id": "r2", "name": "x", "call_id": "c1"}),
        ("tool.completed", {"call_id": "c1", "output": "done"}),
        COMPLETED,
    ]
    parts = ui_message(RUN, log(*drafts), 6).parts
    assert [part["type"] for part in parts] == [
        "step-start", "tool-execute", "step-start", "data-subagent",
    ]  # fmt: skip
    assert (parts[1]["output"], parts[1]["input"]) == ("done", {"command": "ls"})
