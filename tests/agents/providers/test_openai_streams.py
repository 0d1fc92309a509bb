"""Streams of servers with their own variants of OpenAI's protocols, and of hostile servers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.base import ProviderError, Reply
from agents.providers.event_stream import EventDecoder
from agents.providers.openai.chat import END, ChatReplyBuilder
from agents.providers.openai.responses_stream import ResponsesReplyBuilder
from tests.support.openai_server import sse_data

ORIGIN = "openai-chat 127.0.0.1:1"


def chat(
    *deltas: dict[str, Any], finish: str | None = "stop", used: set[str] | None = None
) -> Reply:
    builder = ChatReplyBuilder(ORIGIN, used or set())
    for delta in deltas:
        builder.add({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    if finish:
        builder.add({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    builder.end(marked=False)
    assert builder.reply is not None
    return builder.reply


def call(
    index: int | None, call_id: str | None, name: str | None, arguments: Any
) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    given = {"function": function}
    given |= {} if index is None else {"index": index}
    given |= {} if call_id is None else {"id": call_id}
    return {"tool_calls": [given]}


def inputs(reply: Reply) -> list[dict[str, Any]]:
    return [block["input"] for block in reply.blocks if block["type"] == "tool_use"]


def test_calls_that_all_have_the_index_0() -> None:
    reply = chat(call(0, "a", "ls", '{"n": 1}'), call(0, "b", "ls", '{"n": 2}'))
    assert inputs(reply) == [{"n": 1}, {"n": 2}]
    assert reply.stop_reason == "tool_use"


def test_calls_without_index_or_id() -> None:
    reply = chat(call(None, None, "ls", '{"n": 1}'), call(None, None, "ls", '{"n": 2}'))
    ids = [block["id"] for block in reply.blocks]
    assert inputs(reply) == [{"n": 1}, {"n": 2}]
    assert len(set(ids)) == 2
    assert all(ids)


@pytest.mark.parametrize("index", [None, 0])
@pytest.mark.parametrize("call_id", [None, "a"])
def test_pieces_of_a_call_without_index_or_id(index: int | None, call_id: str | None) -> None:
    reply = chat(
        call(index, call_id, "ls", ""),
        call(None, None, None, '{"n"'),
        call(None, None, "", ": 1}"),
        call(None if index is None else 1, call_id and "b", "ls", '{"n": '),
        call(None, None, None, "2}"),
    )
    assert inputs(reply) == [{"n": 1}, {"n": 2}]


def test_pieces_of_a_call_are_joined_by_its_id() -> None:
    first, second = call(0, "a", "ls", '{"n"'), call(1, "b", "ls", '{"n"')
    rest = call(None, "a", None, ": 1}"), call(None, "b", None, ": 2}")
    assert inputs(chat(first, second, *rest)) == [{"n": 1}, {"n": 2}]


def test_a_piece_before_any_call_is_malformed() -> None:
    with pytest.raises(ProviderError) as caught:
        chat(call(None, None, None, "{}"))
    assert caught.value.code == "malformed_stream"


def test_ids_that_a_server_gives_again_in_each_reply() -> None:
    reply = chat(call(0, "call_0", "ls", "{}"), call(1, "odd id:1", "ls", "{}"), used={"call_0"})
    ids = [block["id"] for block in reply.blocks]
    assert "call_0" not in ids
    assert "odd id:1" not in ids
    assert len(set(ids)) == 2


def test_arguments_that_are_not_text_are_handled() -> None:
    assert inputs(chat(call(0, "a", "ls", {"n": 1}))) == [{"n": 1}]
    assert inputs(chat(call(0, "a", "ls", None))) == [{}]


def test_a_stream_without_its_end_mark_is_complete_with_a_finish_reason() -> None:
    assert chat({"content": "Yes."}).stop_reason == "end_turn"
    builder = ChatReplyBuilder(ORIGIN, set())
    builder.add({"choices": [{"index": 0, "delta": {"content": "Ye"}}]})
    builder.end(marked=False)
    assert builder.reply is None


def test_other_choices_are_not_mixed_in() -> None:
    builder = ChatReplyBuilder(ORIGIN, set())
    for index, words in ((0, "Yes."), (1, "No.")):
        builder.add({"choices": [{"index": index, "delta": {"content": words}}]})
    builder.end(marked=True)
    assert builder.reply is not None
    assert [block["text"] for block in builder.reply.blocks] == ["Yes."]


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        ({"code": 429, "message": "m"}, "rate_limited", True),
        ({"code": "502", "message": "m"}, "server_error", True),
        ({"code": 400, "message": "maximum context length is 9 tokens"}, "context_window", False),
        ({"type": "exceed_context_size_error", "message": "m"}, "context_window", False),
        ({"message": "m"}, "server_error", True),
        ("m", "server_error", True),
    ],
)
def test_errors_in_the_formats_of_other_servers_are_read(
    error: Any, code: str, retryable: bool
) -> None:
    with pytest.raises(ProviderError) as caught:
        ChatReplyBuilder(ORIGIN, set()).add({"error": error})
    assert (caught.value.code, caught.value.retryable) == (code, retryable)


@pytest.mark.parametrize("figure", [-5, "many", 10**30, 1.5, True, None, {}])
def test_invalid_usage_figures_count_as_zero(figure: Any) -> None:
    builder = ChatReplyBuilder(ORIGIN, set())
    told = {"prompt_tokens": figure, "completion_tokens": 3, "prompt_tokens_details": figure}
    builder.add({"choices": [], "usage": told})
    builder.end(marked=True)
    assert builder.reply is not None
    assert (builder.reply.usage.input, builder.reply.usage.output) == (0, 3)


def test_impossible_cache_figures_do_not_become_negative() -> None:
    builder = ChatReplyBuilder(ORIGIN, set())
    told = {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}
    builder.add({"choices": [], "usage": told})
    builder.end(marked=True)
    assert builder.reply is not None
    assert builder.reply.usage.input == 0


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": 7}}]}}]},
        {"choices": ["nonsense"]},
        {"choices": 5},
        {"choices": [{"delta": [1]}]},
    ],
)
def test_chat_events_that_make_no_sense(event: dict[str, Any]) -> None:
    with pytest.raises(ProviderError) as caught:
        ChatReplyBuilder(ORIGIN, set()).add(event)
    assert caught.value.code == "malformed_stream"


def responses(*events: dict[str, Any]) -> Reply:
    builder = ResponsesReplyBuilder("openai-responses x", set())
    for event in events:
        builder.add(event)
    assert builder.reply is not None
    return builder.reply


DONE = {"type": "response.completed", "response": {"model": "m", "usage": None}}


def test_items_without_an_index_are_identified_by_their_ids() -> None:
    """llama.cpp sends the ends of all items after the last delta."""
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": ""}
    whole = thought | {"content": [{"type": "reasoning_text", "text": "Hm"}]}
    message = {"id": "msg_1", "type": "message", "content": []}
    use = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "ls"}
    added, done = "response.output_item.added", "response.output_item.done"
    reply = responses(
        {"type": added, "item": thought},
        {"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "Hm"},
        {"type": added, "item": message},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Yes."},
        {"type": added, "item": use},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"},
        {"type": done, "item": whole},
        {"type": done, "item": message | {"content": [{"type": "output_text", "text": "Yes."}]}},
        {"type": done, "item": use | {"arguments": "{}"}},
        DONE,
    )
    assert [block["type"] for block in reply.blocks] == ["thinking", "text", "tool_use"]
    assert reply.blocks[0]["item"] == whole
    assert reply.stop_reason == "tool_use"


def test_an_item_without_deltas_is_taken_completely() -> None:
    use = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "ls"}
    reply = responses(
        {"type": "response.output_item.added", "output_index": 0, "item": use},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": use | {"arguments": '{"n": 1}'},
        },
        DONE,
    )
    assert inputs(reply) == [{"n": 1}]


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "response.output_text.delta", "output_index": 0, "delta": "x"}],
        [{"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}}],
        [
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
            DONE,
        ],
        [{"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}]
        * 2,
        [{"type": "response.output_item.added", "item": {"type": "message", "id": {}}}],
        [{"type": "response.completed", "response": None}],
    ],
)
def test_responses_events_that_make_no_sense(events: list[dict[str, Any]]) -> None:
    with pytest.raises(ProviderError) as caught:
        responses(*events)
    assert caught.value.code == "malformed_stream"
    assert caught.value.retryable


@given(st.lists(st.integers(1, 40)))
def test_chunks_may_be_cut_anywhere(sizes: list[int]) -> None:
    stream = b": ping\n\n" + sse_data({"choices": [], "é": "日本"}) + b"data: [DONE]\n\n"
    decoder, found, at = EventDecoder(END), [], 0
    for size in [*sizes, len(stream)]:
        found += list(decoder.decode(stream[at : at + size]))
        at += size
    assert found == [{"choices": [], "é": "日本"}]
    assert decoder.ended
