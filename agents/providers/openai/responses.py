"""The messages of one thread as bytes of a Responses API request.

Stateless: the server stores no messages, so each request has all items. The model's reasoning is
encrypted and is sent back unchanged.

Structured outputs of OpenAI's APIs: the server enforces the schema of answers.

The strict mode requires every property of every object and allows no others. Schemas with another
meaning in it are only in the prompt. The engine checks the answer in both cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agents.providers.base import Block, PromptHead
from agents.providers.openai.conversation import (
    OpenAIConversation,
    data_url,
    encode,
    parameters,
    result_parts,
    unknown,
)
from agents.providers.prices import reasons

MIN_OUTPUT = 16
"""Smallest value that the API accepts."""


class ResponsesConversation(OpenAIConversation):
    """See `OpenAIConversation`."""

    path = "/responses"
    longest_id = 64

    def _request(self, head: PromptHead) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": head.model,
            "max_output_tokens": max(MIN_OUTPUT, head.max_tokens),
            "stream": True,
            "store": False,
        }
        if reasons(head.model):
            request["include"] = ["reasoning.encrypted_content"]
        if reasoning := _reasoning(head):
            request["reasoning"] = reasoning
        if head.temperature is not None:
            request["temperature"] = head.temperature
        if head.output_format:
            request["text"] = {"format": as_format(head.output_format)}
        if head.cache_key:
            request["prompt_cache_key"] = head.cache_key
        if head.system:
            request["instructions"] = head.system
        if head.tools:
            request["parallel_tool_calls"] = True
            request["tools"] = [
                {
                    "type": "function",
                    "name": tool["name"],
                    "description": tool.get("description", ""),
                    "parameters": parameters(tool["input_schema"]),
                    "strict": False,
                }
                for tool in head.tools
            ]
        request["input"] = []
        return request

    def _add_reply(self, blocks: list[Block]) -> None:
        phase = None
        reasoning: list[str] = []
        for block in blocks:
            match block["type"]:
                case "thinking":
                    if "item" in block:
                        reasoning.append(encode(block["item"]))
                    continue
                case "redacted_thinking":
                    phase = block.get("phase")
                    continue
                case "text":
                    part = {"type": "output_text", "text": block["text"]}
                    item: Block = {"type": "message", "role": "assistant", "content": [part]}
                    if phase:
                        item["phase"] = phase
                case "tool_use":
                    item = {
                        "type": "function_call",
                        "call_id": self.wire_id(block["id"]),
                        "name": block["name"],
                        "arguments": encode(block["input"]),
                    }
                case _:
                    raise unknown(block)
            # Reasoning is refused without the item that follows it.
            for each in reasoning:
                self._add(each)
            reasoning, phase = [], None
            self._add(encode(item))

    def _add_user(self, blocks: list[Block]) -> None:
        for block in blocks:
            if block["type"] == "tool_result":
                result = {
                    "type": "function_call_output",
                    "call_id": self.wire_id(block["tool_use_id"]),
                    "output": _output(block),
                }
                self._add(encode(result))
            elif self._open:
                self._items += b"," + encode(_part(block)).encode()
            else:
                start = '{"type":"message","role":"user","content":['
                self._add(start + encode(_part(block)), b"]}")


def _reasoning(head: PromptHead) -> Block:
    kind = head.thinking["type"] if head.thinking else ""
    reasoning: Block = {}
    if head.effort:
        reasoning["effort"] = head.effort
    elif kind == "disabled":
        reasoning["effort"] = "none"
    if kind == "adaptive":
        reasoning["summary"] = "auto"
    return reasoning


def _output(block: Block) -> str | list[Block]:
    parts = result_parts(block)
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return [_part(part) for part in parts]


def _part(block: Block) -> Block:
    if block["type"] == "text":
        return {"type": "input_text", "text": block["text"]}
    if block["type"] == "image":
        return {"type": "input_image", "image_url": data_url(block), "detail": "auto"}
    raise unknown(block)


MAX_PROPERTIES = 5_000
MAX_DEPTH = 10
_TAKEN = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "description", "title", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
}  # fmt: skip
_FORMATS = {
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
}  # fmt: skip


def output_format(schema: Block) -> str:
    """Return the request as JSON text for a prompt's head; empty if `schema` is not supported."""
    if schema.get("type") != "object":
        return ""
    parts = list(_parts(schema, 1))
    count = sum(len(part.get("properties", ())) for part, _ in parts)
    if count > MAX_PROPERTIES or max(depth for _, depth in parts) > MAX_DEPTH:
        return ""
    if not all(_is_taken(part) for part, _ in parts):
        return ""
    form = {"type": "json_schema", "name": "answer", "strict": True, "schema": _closed(schema)}
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def as_format(form: str) -> Block:
    """Return the result of `output_format` in the format of the Responses API."""
    parsed: Block = json.loads(form)
    return parsed


def _parts(schema: Block, depth: int) -> Iterator[tuple[Block, int]]:
    """Yield the schema and all schemas inside it, with their depth."""
    yield schema, depth
    within: list[Any] = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    within.append(schema.get("items"))
    for part in within:
        if isinstance(part, dict):
            yield from _parts(part, depth + 1)


def _is_taken(part: Block) -> bool:
    """Return whether the server interprets the part in the same way."""
    if not set(part) <= _TAKEN or not ({"type", "anyOf", "enum", "const"} & set(part)):
        return False
    if part.get("format", "date") not in _FORMATS:
        return False
    kind = part.get("type")
    if kind == "object" or "properties" in part:
        # Every object is closed: one without declared properties would be empty.
        properties = part.get("properties", {})
        is_open = part.get("additionalProperties") not in (None, False)
        return bool(properties) and not is_open and set(part.get("required", ())) == set(properties)
    if kind == "array":
        return isinstance(part.get("items"), dict)
    return True


def _closed(part: Any) -> Any:
    if isinstance(part, list):
        return [_closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    closed: Block = {}
    for name, value in part.items():
        if name == "properties":
            closed[name] = {each: _closed(schema) for each, schema in value.items()}
        else:
            closed[name] = _closed(value) if name in ("items", "anyOf") else value
    if part.get("type") == "object" or "properties" in part:
        closed["additionalProperties"] = False
    return closed
