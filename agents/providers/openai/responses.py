"""The messages of one thread as bytes of a Responses API request.

Stateless: the server stores no messages, so each request has all items. The model's reasoning is
encrypted and is sent back unchanged.
"""

from __future__ import annotations

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
from agents.providers.openai.output import as_format
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
