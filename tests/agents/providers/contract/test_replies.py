"""Replies, for every provider."""

from __future__ import annotations

import json

import pytest

from agents.providers.base import PartDelta, PartStarted, Reply
from tests.agents.providers.contract.asking import (
    Talk,
    calls_of,
    events_of,
    reply_of,
    result,
    text,
)
from tests.agents.providers.contract.wires import Wire
from tests.support.messages_script import ToolUse, Turn


def test_a_text_comes_in_pieces_and_whole(wire: Wire) -> None:
    events = events_of(wire, Turn("A sentence in pieces: größer, 日本, 🙂.", pieces=5))
    started = [event for event in events if isinstance(event, PartStarted)]
    deltas = [event for event in events if isinstance(event, PartDelta)]
    reply = events[-1]
    assert isinstance(reply, Reply)
    assert [part.kind for part in started] == ["text"]
    assert len(deltas) == 5
    assert "".join(delta.text for delta in deltas) == "A sentence in pieces: größer, 日本, 🙂."
    shown = [block for block in reply.blocks if block["type"] != "redacted_thinking"]
    assert shown == [text("A sentence in pieces: größer, 日本, 🙂.")]
    assert (reply.stop_reason, reply.model) == ("end_turn", wire.model)


def test_parallel_calls_come_in_their_order(wire: Wire) -> None:
    uses = [ToolUse("ls", {"path": "/ä"}), ToolUse("now"), ToolUse("ls", {"path": "/b"})]
    events = events_of(wire, Turn("I look.", tool_uses=uses))
    reply = events[-1]
    assert isinstance(reply, Reply)
    calls = calls_of(reply)
    assert [(call["name"], call["input"]) for call in calls] == [
        ("ls", {"path": "/ä"}),
        ("now", {}),
        ("ls", {"path": "/b"}),
    ]
    assert len({call["id"] for call in calls}) == 3
    assert reply.stop_reason == "tool_use"
    started = [event for event in events if isinstance(event, PartStarted)][1:]
    assert [(part.call_id, part.tool) for part in started] == [
        (call["id"], call["name"]) for call in calls
    ]


def test_a_part_has_the_index_of_its_block(wire: Wire) -> None:
    turn = Turn("I look.", [ToolUse("ls", {"path": "/"})], thinking="Hm, where?")
    events = events_of(wire, turn)
    reply = events[-1]
    assert isinstance(reply, Reply)
    shown = {"text": "text", "reasoning": "thinking", "tool_input": "tool_use"}
    for event in events:
        if isinstance(event, PartStarted | PartDelta):
            assert reply.blocks[event.index]["type"] == shown[event.kind]
    for kind, field in (("text", "text"), ("reasoning", "thinking")):
        came = "".join(e.text for e in events if isinstance(e, PartDelta) and e.kind == kind)
        assert came in [block.get(field) for block in reply.blocks]


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_why_a_reply_ends(wire: Wire, reason: str) -> None:
    reply = reply_of(wire, Turn("I would rather not.", stop_reason=reason))
    assert reply.stop_reason == reason
    assert text("I would rather not.") in reply.blocks


@pytest.mark.parametrize("raw", ['{"path": "/a', '["/a"]', '{"path": NaN}', '{"path": "\\ud83d"}'])
def test_a_broken_input_is_distinguished(wire: Wire, raw: str) -> None:
    if wire.whole_inputs:
        pytest.skip("this API does not send such replies")
    reply = reply_of(wire, Turn(tool_uses=[ToolUse("ls", raw), ToolUse("now")]))
    broken, whole = calls_of(reply)
    assert broken["input"] == {}
    assert reply.broken_inputs == {broken["id"]: raw}
    assert whole["input"] == {}


def test_a_broken_input_does_not_break_the_next_request(wire: Wire) -> None:
    if wire.whole_inputs:
        pytest.skip("this API does not send such replies")
    with Talk(wire, [Turn(tool_uses=[ToolUse("ls", '{"path')]), Turn("Sorry.")]) as talk:
        reply = talk.ask(text("Look"))
        talk.ask(result(calls_of(reply)[0]["id"], "The input was not JSON.", is_error=True))


def test_lone_surrogates_do_not_get_through(wire: Wire) -> None:
    with Talk(wire, [Turn("a\ud83dz", pieces=1), Turn("Fine.")]) as talk:
        assert "\ud83d" not in json.dumps(talk.ask(text("Hello")).blocks, ensure_ascii=False)
        talk.ask(text("And now?"))


def test_blank_text_makes_no_block(wire: Wire) -> None:
    reply = reply_of(wire, Turn(" \n", tool_uses=[ToolUse("now")]))
    assert [block["type"] for block in reply.blocks if "thinking" not in block["type"]] == [
        "tool_use"
    ]


def test_usage_includes_cached_tokens(wire: Wire) -> None:
    with Talk(wire, [Turn("Fine."), Turn("Again."), Turn("Thrice.")]) as talk:
        first = talk.ask(text("word " * 2000)).usage
        second = talk.ask(text("And now?")).usage
    assert first.cache_read == 0
    assert first.input + first.cache_write > 2000
    assert second.cache_read > 2000
    assert second.input + second.cache_write < 500
    assert second.output > 0
    assert second.total == second.input + second.cache_read + second.cache_write + second.output


def test_thoughts_are_shown_apart(wire: Wire) -> None:
    events = events_of(wire, Turn("Yes.", thinking="First this.\n\nThen that."))
    reply = events[-1]
    assert isinstance(reply, Reply)
    thoughts = [block for block in reply.blocks if block["type"] == "thinking"]
    assert [block["thinking"] for block in thoughts] == ["First this.\n\nThen that."]
