"""A loopback HTTP server that speaks Chat Completions, like a server of open models.

See `MessagesServer` for its use. Its models think in `reasoning_content`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from tests.support.messages_script import Fault, Turn
from tests.support.messages_stream import Reply
from tests.support.messages_validation import Refused
from tests.support.openai_server import OpenAIServer, cut, sse_data

with lazy_modules:
    # openai takes 0.5 s, and each pytest process imports this module when it collects the tests.
    from tests.support import openai_chat_rules as rules

FINISH = {"max_tokens": "length", "tool_use": "tool_calls", "refusal": "stop"}


class ChatServer(OpenAIServer):
    """Remembers the thoughts that it sent. They must come back unchanged or be left out."""

    path = "/v1/chat/completions"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._thoughts: set[str] = set()

    def _check(self, parsed: dict[str, Any]) -> None:
        rules.check_request(parsed)
        for index, message in enumerate(parsed["messages"]):
            thought = message.get("reasoning_content")
            if thought is not None and thought not in self._thoughts:
                raise Refused(f"messages[{index}].reasoning_content: this model thought no such")

    def _units(self, parsed: dict[str, Any]) -> list[object]:
        return [parsed.get("tools"), *parsed["messages"]]

    def _events(self, reply: Reply, turn: Turn) -> Iterator[bytes]:
        head = {
            "id": reply.id.replace("resp", "chatcmpl"),
            "object": "chat.completion.chunk",
            "created": 1,
            "model": reply.model,
        }
        usage = {"usage": None}
        for choice in self._choices(reply, turn):
            yield sse_data(
                head | {"choices": [{"index": 0, "finish_reason": None} | choice]} | usage
            )
        yield sse_data(head | {"choices": [], "usage": _usage(reply.usage)})
        yield b"data: [DONE]\n\n"

    def _choices(self, reply: Reply, turn: Turn) -> Iterator[dict[str, Any]]:
        yield {"delta": {"role": "assistant", "content": ""}}
        calls = 0
        for block in reply.blocks:
            if block["type"] == "thinking":
                self._thoughts.add(block["thinking"])
                for piece in cut(block["thinking"], turn.pieces):
                    yield {"delta": {"reasoning_content": piece}}
            elif block["type"] == "text":
                field = "refusal" if reply.stop_reason == "refusal" else "content"
                for piece in cut(block["text"], turn.pieces):
                    yield {"delta": {field: piece}}
            elif block["type"] == "tool_use":
                function = {"name": block["name"], "arguments": ""}
                call = {"index": calls, "id": block["id"], "type": "function"}
                yield {"delta": {"tool_calls": [call | {"function": function}]}}
                for piece in cut(reply.raw_inputs[block["id"]], turn.pieces):
                    more = {"index": calls, "function": {"arguments": piece}}
                    yield {"delta": {"tool_calls": [more]}}
                calls += 1
        yield {"delta": {}, "finish_reason": FINISH.get(reply.stop_reason, "stop")}

    def _is_delta(self, event: bytes) -> bool:
        if b'"choices": [{' not in event:
            return False
        delta = json.loads(event[6:])["choices"][0]["delta"]
        return bool(delta.get("content") or delta.get("tool_calls") or delta.get("refusal"))

    def _is_end(self, event: bytes) -> bool:
        return event.startswith(b"data: {") and b'"finish_reason": null' not in event

    def _broken(self, fault: Fault) -> bytes:
        if fault.kind == "malformed_stream":
            return b'data: {"id": "chatcmpl", "choi\n\n'
        return sse_data({"error": self._told(fault)}) if fault.kind == "error_event" else b""


def _usage(usage: dict[str, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": usage["input"],
        "prompt_tokens_details": {"cached_tokens": usage["cache_read"]},
        "completion_tokens": usage["output"],
        "completion_tokens_details": {"reasoning_tokens": usage["reasoning"]},
        "total_tokens": usage["input"] + usage["output"],
    }
