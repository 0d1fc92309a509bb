"""Events from bytes, for any split by the network."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.anthropic.stream import ReplyBuilder
from agents.providers.base import PartDelta, ProviderError, Reply
from agents.providers.event_stream import EventDecoder
from tests.support.messages_script import ToolUse, Turn
from tests.support.messages_stream import Reply as SentReply
from tests.support.messages_stream import events, reply_blocks

USAGE = {"input_tokens": 3, "output_tokens": 4}


def sent(turn: Turn) -> tuple[bytes, SentReply]:
    """Return a turn as the server streams it."""
    blocks, raw_inputs = reply_blocks(turn, 7)
    stop_reason = turn.stop_reason or ("tool_use" if turn.tool_uses else "end_turn")
    reply = SentReply("msg_7", "a-model", blocks, raw_inputs, stop_reason, USAGE)
    return b"".join(events(reply, turn.pieces)), reply


def received(chunks: list[bytes]) -> Reply:
    """Return the reply that a client builds from these chunks."""
    decoder, builder = EventDecoder(), ReplyBuilder()
    for chunk in chunks:
        for event in decoder.decode(chunk):
            builder.add(event)
    assert builder.reply is not None
    return builder.reply


@pytest.mark.slow
@given(
    text=st.text(min_size=1, max_size=60).filter(str.strip),
    arguments=st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
    pieces=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 5000), max_size=12),
    line_end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_a_stream_may_be_cut_anywhere(
    text: str, arguments: dict[str, str], pieces: int, cuts: list[int], line_end: bytes
) -> None:
    turn = Turn(text, [ToolUse("ls", arguments)], thinking="hm", pieces=pieces)
    stream, reply = sent(turn)
    stream = stream.replace(b"\n", line_end)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    assert received(chunks).blocks == reply.blocks


def test_comments_unknown_events_and_unknown_fields_do_no_harm() -> None:
    stream, reply = sent(Turn("Hello"))
    noise = (
        b": a comment\n\n"
        b"retry: 3000\nid: 5\n\n"
        b'event: novelty\ndata: {"type": "novelty", "x": 1}\n\n'
        b'data: {"type": "content_block_delta", "index": 0,\n'
        b'data: "delta": {"type": "novel_delta", "y": 2}}\n\n'
    )
    head, separator, tail = stream.partition(b"event: content_block_stop")
    assert received([head + noise + separator + tail]).blocks == reply.blocks


def test_half_of_a_surrogate_pair_does_not_get_through() -> None:
    decoder, builder = EventDecoder(), ReplyBuilder()
    stream = (
        b'data: {"type": "content_block_start", "index": 0,'
        b' "content_block": {"type": "text", "text": ""}}\n\n'
        b'data: {"type": "content_block_delta", "index": 0,'
        b' "delta": {"type": "text_delta", "text": "a\\ud83d"}}\n\n'
        b'data: {"type": "content_block_delta", "index": 0,'
        b' "delta": {"type": "text_delta", "text": "\\ude42b \\udc00"}}\n\n'
        b'data: {"type": "content_block_stop", "index": 0}\n\n'
        b'data: {"type": "message_stop"}\n\n'
    )
    parts = [builder.add(event) for event in decoder.decode(stream)]
    for part in parts:
        if isinstance(part, PartDelta):
            part.text.encode()
    assert builder.reply is not None
    assert builder.reply.blocks == [{"type": "text", "text": "a🙂b \ufffd"}]


@pytest.mark.parametrize(
    "stream",
    [
        b"data: [1]\n\n",
        b'data: {"type": "content_block_delta", "index": 0}\n\n',
        b'data: {"type": "content_block_stop", "index": 3}\n\n',
        b'data: {"type": "content_block_start", "index": 0, "content_block": []}\n\n',
        b'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text",'
        b' "text": ""}}\n\ndata: {"type": "message_stop"}\n\n',
        b'data: {"type": "message_start", "message": null}\n\n',
        b"data: \xff\xfe\n\n",
    ],
)
def test_a_stream_of_nonsense_is_malformed(stream: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        received([stream])
    assert (caught.value.code, caught.value.retryable) == ("malformed_stream", True)


def test_an_error_without_a_type_is_an_error() -> None:
    with pytest.raises(ProviderError, match="out of memory") as caught:
        received([b'data: {"error": {"message": "out of memory"}}\n\n'])
    assert caught.value.code == "server_error"
