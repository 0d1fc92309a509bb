"""The messages of one thread as bytes of a Chat Completions request."""

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

_TEXT_START, _TEXT_END = '{"role":"user","content":"', b'"}'
_PARTS_START, _PARTS_END = '{"role":"user","content":[', b"]}"


class ChatConversation(OpenAIConversation):
    """See `OpenAIConversation`. `official`: OpenAI's own API, which has additional fields.

    Many models' templates require alternating roles, so adjacent user messages become one.
    """

    path = "/chat/completions"
    longest_id = 40

    def __init__(self, head: PromptHead, origin: str, *, official: bool) -> None:
        self._official = official
        self._opened_at = 0
        super().__init__(head, origin)

    def _request(self, head: PromptHead) -> dict[str, Any]:
        limit = "max_completion_tokens" if self._official else "max_tokens"
        request: dict[str, Any] = {
            "model": head.model,
            limit: head.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._official:
            request["store"] = False
            if head.cache_key:
                request["prompt_cache_key"] = head.cache_key
        if head.effort:
            request["reasoning_effort"] = head.effort
        elif head.thinking and head.thinking["type"] == "disabled":
            request["reasoning_effort"] = "none"
        if head.temperature is not None:
            request["temperature"] = head.temperature
        if head.output_format:
            told = as_format(head.output_format)
            kind = told.pop("type")
            request["response_format"] = {"type": kind, kind: told}
        if head.tools:
            request["parallel_tool_calls"] = True
            request["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool["name"],
                        "description": tool.get("description", ""),
                        "parameters": parameters(tool["input_schema"]),
                    },
                }
                for tool in head.tools
            ]
        request["messages"] = [{"role": "system", "content": head.system}] if head.system else []
        return request

    def _add_reply(self, blocks: list[Block]) -> None:
        texts: list[str] = []
        calls: list[Block] = []
        thoughts: Block = {}
        for block in blocks:
            match block["type"]:
                case "thinking" if block.get("field"):
                    thoughts[block["field"]] = thoughts.get(block["field"], "") + block["thinking"]
                case "text":
                    texts.append(block["text"])
                case "tool_use":
                    function = {"name": block["name"], "arguments": encode(block["input"])}
                    call_id = self.wire_id(block["id"])
                    calls.append({"id": call_id, "type": "function", "function": function})
                case "thinking" | "redacted_thinking":
                    pass
                case _:
                    raise unknown(block)
        if not texts and not calls:
            return  # only thoughts, which cannot be sent alone
        message: Block = {"role": "assistant", "content": "\n\n".join(texts) if texts else None}
        message |= thoughts
        if calls:
            message["tool_calls"] = calls
        self._add(encode(message))

    def _add_user(self, blocks: list[Block]) -> None:
        pictures: list[Block] = []
        for block in blocks:
            if block["type"] == "tool_result":
                pictures += self._add_result(block)
        for block in [*pictures, *(each for each in blocks if each["type"] != "tool_result")]:
            if block["type"] == "text":
                self._add_text(block["text"])
            elif block["type"] == "image":
                self._add_part({"type": "image_url", "image_url": {"url": data_url(block)}})
            else:
                raise unknown(block)

    def _add_result(self, block: Block) -> list[Block]:
        """Add a tool's message, which can only contain text. Return the parts for its pictures."""
        call_id = self.wire_id(block["tool_use_id"])
        texts: list[str] = []
        pictures: list[Block] = []
        for part in result_parts(block):
            if part["type"] == "text":
                texts.append(part["text"])
            elif part["type"] == "image":
                pictures.append(part)
            else:
                raise unknown(part)
        if pictures:
            texts.append("(Its pictures follow.)")
            pictures.insert(0, {"type": "text", "text": f"Pictures of the result of {call_id}:"})
        self._add(encode({"role": "tool", "tool_call_id": call_id, "content": "\n".join(texts)}))
        return pictures

    def _add_text(self, text: str) -> None:
        """Add plain text if there are no other parts: not every server supports parts."""
        if self._open == _TEXT_END:
            self._items += encode("\n\n" + text)[1:-1].encode()
        elif self._open:
            self._add_part({"type": "text", "text": text})
        else:
            self._add(_TEXT_START + encode(text)[1:-1], _TEXT_END)
            self._opened_at = len(self._items) - len(encode(text)[1:-1].encode())

    def _add_part(self, part: Block) -> None:
        if self._open == _TEXT_END:  # the present text becomes the first part
            said = bytes(self._items[self._opened_at :])
            del self._items[self._opened_at - len(_TEXT_START) :]
            self._items += _PARTS_START.encode() + b'{"type":"text","text":"' + said + b'"}'
            self._open = _PARTS_END
        if self._open:
            self._items += b"," + encode(part).encode()
        else:
            self._add(_PARTS_START + encode(part), _PARTS_END)
