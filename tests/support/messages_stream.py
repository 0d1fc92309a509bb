"""A turn as server-sent events, in the order and format of the Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.messages_script import Turn


@dataclass(frozen=True)
class Reply:
    """A turn with IDs, signatures and usage."""

    id: str
    model: str
    blocks: list[dict[str, Any]]
    raw_inputs: dict[str, str]
    """The input of each call as text, by call ID. It may be invalid JSON."""
    stop_reason: str
    usage: dict[str, int]


def reply_blocks(turn: Turn, number: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the unsigned content blocks of a turn, and the raw inputs of its calls."""
    blocks: list[dict[str, Any]] = []
    if turn.thinking is not None:
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": ""})
    if turn.redacted_thinking is not None:
        blocks.append({"type": "redacted_thinking", "data": turn.redacted_thinking})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    raw_inputs: dict[str, str] = {}
    for position, use in enumerate(turn.tool_uses):
        call_id = use.id or f"toolu_{number:05}_{position}"
        raw = use.input if isinstance(use.input, str) else json.dumps(use.input)
        raw_inputs[call_id] = raw
        parsed = {} if isinstance(use.input, str) else use.input
        blocks.append({"type": "tool_use", "id": call_id, "name": use.name, "input": parsed})
    return blocks, raw_inputs


def message(reply: Reply) -> dict[str, Any]:
    """Return the reply to a request that does not stream."""
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": reply.blocks,
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        "usage": reply.usage,
    }


def sse(data: dict[str, Any]) -> bytes:
    """Return one event, named by its type."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def events(reply: Reply, pieces: int) -> Iterator[bytes]:
    """Return all events of a reply, `message_start` to `message_stop`."""
    start = message(reply) | {"content": [], "stop_reason": None}
    start["usage"] = reply.usage | {"output_tokens": 1}
    yield sse({"type": "message_start", "message": start})
    for index, block in enumerate(reply.blocks):
        yield sse({"type": "content_block_start", "index": index, "content_block": _empty(block)})
        if index == 0:
            yield sse({"type": "ping"})
        for delta in _deltas(block, reply.raw_inputs, pieces):
            yield sse({"type": "content_block_delta", "index": index, "delta": delta})
        yield sse({"type": "content_block_stop", "index": index})
    yield sse(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop_reason, "stop_sequence": None},
            "usage": {
                "input_tokens": None,
                "cache_read_input_tokens": None,
                "output_tokens": reply.usage["output_tokens"],
            },
        }
    )
    yield sse({"type": "message_stop"})


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    """Return the block as it starts: complete except for the content of its deltas."""
    brought = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: brought.get(name, value) for name, value in block.items()}


def _deltas(
    block: dict[str, Any], raw_inputs: dict[str, str], pieces: int
) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    if kind == "text":
        for piece in _cut(block["text"], pieces):
            yield {"type": "text_delta", "text": piece}
    elif kind == "thinking":
        for piece in _cut(block["thinking"], pieces):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind == "tool_use":
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in _cut(raw_inputs[block["id"]], pieces):
            yield {"type": "input_json_delta", "partial_json": piece}


def _cut(text: str, pieces: int) -> Iterator[str]:
    size = max(1, -(-len(text) // pieces))
    for start in range(0, len(text), size):
        yield text[start : start + size]
