"""A loopback HTTP server that speaks the Responses API. See `MessagesServer` for its use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from tests.support.messages_script import Fault, Request, Turn
from tests.support.messages_stream import Reply
from tests.support.messages_validation import Refused
from tests.support.openai_server import OpenAIServer, cut, sse_data

with lazy_modules:
    # openai takes 0.5 s, and each pytest process imports this module when it collects the tests.
    from tests.support import openai_responses_rules as rules


class ResponsesRequest(Request):
    """A request. `messages` is the input."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.json["input"]
        return items

    @cached_property
    def replies(self) -> int:  # type: ignore[override]
        said = [
            item["type"] in ("function_call", "reasoning") or item.get("role") == "assistant"
            for item in self.messages
        ]
        return sum(now and not before for before, now in zip([False, *said], said, strict=False))


class ResponsesServer(OpenAIServer):
    """Remembers the reasoning that it sent. It must come back unchanged or be left out."""

    path = "/v1/responses"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._reasoning: dict[str, dict[str, Any]] = {}

    def _request(self, number: int, path: str, headers: dict[str, str], body: bytes) -> Request:
        return ResponsesRequest(number, headers, body)

    def _check(self, parsed: dict[str, Any]) -> None:
        rules.check_request(parsed)
        for item in parsed["input"]:
            if item.get("type") != "reasoning":
                continue
            if item["id"] not in self._reasoning or "encrypted_content" not in item:
                raise Refused(
                    f"Item with id '{item['id']}' not found. Items are not persisted when `store` "
                    "is set to false. Try again with `store` set to true, or remove this item "
                    "from your input."
                )
            if item != self._reasoning[item["id"]]:
                raise Refused(
                    f"The encrypted content for item {item['id']} could not be verified. Reason: "
                    "Encrypted content could not be decrypted or parsed."
                )

    def _units(self, parsed: dict[str, Any]) -> list[object]:
        return [parsed.get("tools"), parsed.get("instructions"), *parsed["input"]]

    def _events(self, reply: Reply, turn: Turn) -> Iterator[bytes]:
        for number, event in enumerate(self._told_events(reply, turn)):
            yield f"event: {event['type']}\n".encode() + sse_data(
                event | {"sequence_number": number}
            )

    def _told_events(self, reply: Reply, turn: Turn) -> Iterator[dict[str, Any]]:
        base: dict[str, Any] = {
            "id": reply.id,
            "object": "response",
            "model": reply.model,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "usage": None,
        }
        started = base | {"status": "in_progress"}
        yield {"type": "response.created", "response": started}
        yield {"type": "response.in_progress", "response": started}
        output: list[dict[str, Any]] = []
        for index, block in enumerate(reply.blocks):
            for event in self._item_events(index, block, reply, turn):
                if event["type"] == "response.output_item.done":
                    output.append(event["item"])
                yield event
        reason = {"max_tokens": "max_output_tokens"}.get(reply.stop_reason)
        kind = "incomplete" if reason else "completed"
        ended = base | {"status": kind, "output": output, "usage": _usage(reply.usage)}
        if reason:
            ended["incomplete_details"] = {"reason": reason}
        yield {"type": f"response.{kind}", "response": ended}

    def _item_events(
        self, index: int, block: dict[str, Any], reply: Reply, turn: Turn
    ) -> Iterator[dict[str, Any]]:
        at = {"output_index": index}
        if block["type"] in ("thinking", "redacted_thinking"):
            yield from self._reasoning_events(at, block, reply, turn)
        elif block["type"] == "text":
            yield from _message_events(at, block, reply, turn)
        else:
            item = {
                "type": "function_call",
                "id": f"fc_{block['id']}",
                "call_id": block["id"],
                "name": block["name"],
                "arguments": "",
                "status": "in_progress",
            }
            yield at | {"type": "response.output_item.added", "item": item}
            raw = reply.raw_inputs[block["id"]]
            for piece in cut(raw, turn.pieces):
                yield at | {
                    "type": "response.function_call_arguments.delta",
                    "item_id": item["id"],
                    "delta": piece,
                }
            yield at | {"type": "response.function_call_arguments.done", "arguments": raw}
            whole = item | {"arguments": raw, "status": "completed"}
            yield at | {"type": "response.output_item.done", "item": whole}

    def _reasoning_events(
        self, at: dict[str, Any], block: dict[str, Any], reply: Reply, turn: Turn
    ) -> Iterator[dict[str, Any]]:
        item_id = f"rs_{reply.id}_{at['output_index']}"
        item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": []}
        partial = item | {"encrypted_content": "gAAAApartial"}
        yield at | {"type": "response.output_item.added", "item": partial}
        texts = [text for text in block.get("thinking", "").split("\n\n") if text]
        for number, text in enumerate(texts):
            part = at | {"item_id": item_id, "summary_index": number}
            empty = {"type": "summary_text", "text": ""}
            yield part | {"type": "response.reasoning_summary_part.added", "part": empty}
            for piece in cut(text, turn.pieces):
                yield part | {"type": "response.reasoning_summary_text.delta", "delta": piece}
            yield part | {"type": "response.reasoning_summary_text.done", "text": text}
            item["summary"].append({"type": "summary_text", "text": text})
        item["encrypted_content"] = f"gAAAA{item_id}"
        self._reasoning[item_id] = item
        yield at | {"type": "response.output_item.done", "item": item}

    def _is_delta(self, event: bytes) -> bool:
        return event.startswith((b"event: response.output_text.delta", _ARGUMENTS, _SUMMARY))

    def _is_end(self, event: bytes) -> bool:
        return event.startswith((b"event: response.completed", b"event: response.incomplete"))

    def _broken(self, fault: Fault) -> bytes:
        if fault.kind == "malformed_stream":
            return b'event: response.output_text.delta\ndata: {"type": "response.outp\n\n'
        if fault.kind != "error_event":
            return b""
        if fault.code == "server_error":  # the API reports errors in two ways
            error = {"code": fault.code, "message": fault.message}
            response = {"status": "failed", "error": error}
            return sse_data({"type": "response.failed", "response": response})
        return sse_data(self._told(fault) | {"type": "error"})


_ARGUMENTS = b"event: response.function_call_arguments.delta"
_SUMMARY = b"event: response.reasoning_summary_text.delta"


def _message_events(
    at: dict[str, Any], block: dict[str, Any], reply: Reply, turn: Turn
) -> Iterator[dict[str, Any]]:
    kind = "refusal" if reply.stop_reason == "refusal" else "output_text"
    field = "refusal" if kind == "refusal" else "text"
    item: dict[str, Any] = {
        "id": f"msg_{reply.id}_{at['output_index']}",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "phase": "commentary" if turn.tool_uses else "final_answer",
        "content": [],
    }
    yield at | {"type": "response.output_item.added", "item": item}
    part = at | {"item_id": item["id"], "content_index": 0}
    yield part | {"type": "response.content_part.added", "part": {"type": kind, field: ""}}
    for piece in cut(block["text"], turn.pieces):
        yield part | {"type": f"response.{kind}.delta", "delta": piece}
    yield part | {"type": f"response.{kind}.done", field: block["text"]}
    whole = {"type": kind, field: block["text"]}
    yield part | {"type": "response.content_part.done", "part": whole}
    yield at | {
        "type": "response.output_item.done",
        "item": item | {"status": "completed", "content": [whole]},
    }


def _usage(usage: dict[str, int]) -> dict[str, Any]:
    return {
        "input_tokens": usage["input"],
        "input_tokens_details": {
            "cached_tokens": usage["cache_read"],
            "cache_write_tokens": usage["cache_write"],
        },
        "output_tokens": usage["output"],
        "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
        "total_tokens": usage["input"] + usage["output"],
    }


def items_of(request: Request, kind: str) -> list[dict[str, Any]]:
    """Return all items of one type in a request's input."""
    return [item for item in json.loads(request.body)["input"] if item.get("type") == kind]
