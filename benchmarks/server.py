"""A model that costs almost nothing: the Messages API with a scripted answer.

The first message of a conversation contains the script, so that one server works for all harnesses
and all benchmarks at the same time:

    script tool=read_todos calls=50 delay=0 pace=0

calls the tool 50 times and then answers. `delay` is the pause in milliseconds before a reply, and
`pace` the pause between its events. With 0 it sends them all at the same time, each in a separate
HTTP chunk.

    python benchmarks/server.py

serves until standard input ends. The first line of its output is its URL. Standard library only.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from functools import cache
from typing import Any

SCRIPT = re.compile(rb"script tool=(\w+) calls=(\d+) delay=(\d+) pace=(\d+)")
ASSISTANT = (b'"role":"assistant"', b'"role": "assistant"')

TEXT = "The list is the same as before, so I look at it once more and compare it with my notes."
ANSWER = "I have looked at the list as often as you asked, and it was the same each time. Done."
TEXT_DELTAS = 8
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
REFUSAL = (
    b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 84\r\n\r\n"
    b'{"type":"error","error":{"type":"not_found_error","message":"no script, no reply"}} '
)
NUMBER = b"000000"
"""A placeholder in a prepared reply for the call's number: ids differ within a conversation."""


def script(tool: str, calls: int, *, delay_ms: int = 0, pace_ms: int = 0) -> str:
    """Return the first message of a conversation with `calls` calls of `tool`, then an answer."""
    return f"script tool={tool} calls={calls} delay={delay_ms} pace={pace_ms}"


def _event(data: dict[str, Any]) -> bytes:
    event = f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def _delta(index: int, kind: str, name: str, text: str) -> bytes:
    return _event(
        {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": kind, name: text},
        }
    )


def _block(index: int, block: dict[str, Any], deltas: list[bytes]) -> list[bytes]:
    start = {"type": "content_block_start", "index": index, "content_block": block}
    return [_event(start), *deltas, _event({"type": "content_block_stop", "index": index})]


@cache
def reply(tool: str) -> tuple[bytes, ...]:
    """Return the events of one reply, in the order of the real API.

    The reply calls `tool`. If `tool` is empty, the reply is the final answer.
    """
    text = TEXT if tool else ANSWER
    size = -(-len(text) // TEXT_DELTAS)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    message = {
        "id": f"msg_{NUMBER.decode()}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 12,
            "cache_creation_input_tokens": 80,
            "cache_read_input_tokens": 2_000,
            "output_tokens": 1,
        },
    }
    parts = [_event({"type": "message_start", "message": message})]
    deltas = [_delta(0, "text_delta", "text", piece) for piece in pieces]
    parts += _block(0, {"type": "text", "text": ""}, deltas)
    parts.insert(2, _event({"type": "ping"}))
    if tool:
        call = {"type": "tool_use", "id": f"toolu_{NUMBER.decode()}", "name": tool, "input": {}}
        pieces = ["", "{", "}"]
        deltas = [_delta(1, "input_json_delta", "partial_json", piece) for piece in pieces]
        parts += _block(1, call, deltas)
    end = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    parts.append(_event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 64}}))
    parts.append(_event({"type": "message_stop"}))
    return (*parts, b"0\r\n\r\n")


class Connection(asyncio.Protocol):
    """One client's connection, which handles one request after the other."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._received[:head_end]).lower()
        length = int((re.search(rb"content-length: *(\d+)", head) or [0, 0])[1])
        end = head_end + 4 + length
        if len(self._received) < end:
            return
        body = bytes(self._received[head_end + 4 : end])
        del self._received[:end]
        self._answer(body)

    def _answer(self, body: bytes) -> None:
        asked = SCRIPT.search(body)
        if asked is None:
            self._write(REFUSAL)
            return
        calls, delay, pace = (int(number) for number in asked.groups()[1:])
        replies = sum(body.count(spelling) for spelling in ASSISTANT)
        tool = asked[1].decode() if replies < calls else ""
        number = b"%06d" % replies
        events = [event.replace(NUMBER, number) for event in reply(tool)]
        if delay or pace:
            self._loop.call_later(delay / 1000, self._send, events, pace / 1000)
        else:
            self._send(events, 0)

    def _send(self, events: list[bytes], pace: float) -> None:
        if not pace:
            self._write(HEAD + b"".join(events))
            return
        self._write(HEAD)
        self._send_one(events, 0, pace)

    def _send_one(self, events: list[bytes], position: int, pace: float) -> None:
        last = position + 2 == len(events)  # the end of the body is sent with message_stop
        self._write(b"".join(events[position:]) if last else events[position])
        if not last:
            self._loop.call_later(pace, self._send_one, events, position + 1, pace)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


async def serve() -> None:
    """Serve on a free loopback port until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
