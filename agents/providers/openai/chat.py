"""The messages of one thread as bytes of a Chat Completions request."""

from __future__ import annotations

from typing import Any

from agents.providers.base import Block, ModelEvent, PartStarted, PromptHead, Reply, Usage
from agents.providers.errors import malformed
from agents.providers.openai.conversation import (
    OpenAIConversation,
    data_url,
    encode,
    parameters,
    result_parts,
    unknown,
)
from agents.providers.openai.errors import event_error
from agents.providers.openai.reply import ReplyBlocks, as_text, usage_of
from agents.providers.openai.responses import as_format

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


END = b"[DONE]"
_THOUGHTS = ("reasoning_content", "reasoning")
"""Field names of thoughts in servers of open models. Thoughts go back under the same name."""
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


class ChatReplyBuilder:
    """Collects the events of one reply. `end` sets `reply`."""

    last_event = "[DONE]"

    def __init__(self, origin: str, used_ids: set[str]) -> None:
        self.reply: Reply | None = None
        self._origin = origin
        self._parts = ReplyBlocks(used_ids)
        self._text: PartStarted | None = None
        self._thoughts: PartStarted | None = None
        self._calls: dict[object, tuple[PartStarted, object]] = {}
        self._last_call: PartStarted | None = None
        self._refused = False
        self._stop_reason = ""
        self._usage = Usage()
        self._model = ""

    def add(self, event: dict[str, Any]) -> list[ModelEvent]:
        """Add one event; return events for watchers.

        Raises `ProviderError` for an error and for an invalid event.
        """
        if "choices" not in event and event.get("error"):
            error = event["error"]
            raise event_error(error if isinstance(error, dict) else {"message": str(error)})
        try:
            if event.get("usage"):
                self._usage = usage_of(event["usage"], "prompt", "completion")
            if isinstance(event.get("model"), str):
                self._model = event["model"] or self._model
            found: list[ModelEvent] = []
            for choice in event.get("choices") or ():
                if choice.get("index", 0) == 0:
                    found += self._delta(choice.get("delta") or {})
                    self._stop_reason = choice.get("finish_reason") or self._stop_reason
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise malformed(f"{error!r} in event {str(event)[:200]}") from error
        return found

    def end(self, *, marked: bool) -> None:
        """End the stream; `marked`: the server sent the end mark, which not every server does."""
        if marked or self._stop_reason:
            self.reply = self._finish()

    def _delta(self, delta: dict[str, Any]) -> list[ModelEvent]:
        found: list[ModelEvent | None] = []
        for field in _THOUGHTS:
            if delta.get(field):
                if self._thoughts is None:
                    own = {"origin": self._origin, "field": field}
                    self._thoughts = self._parts.start_thoughts(own)
                    found.append(self._thoughts)
                found.append(self._parts.add(self._thoughts, delta[field]))
                break
        for field in ("content", "refusal"):
            if delta.get(field):
                self._refused |= field == "refusal"
                if self._text is None:
                    self._text = self._parts.start_text()
                    found.append(self._text)
                found.append(self._parts.add(self._text, delta[field]))
        for call in delta.get("tool_calls") or ():
            found += self._call(call)
        return [event for event in found if event is not None]

    def _call(self, call: dict[str, Any]) -> list[ModelEvent | None]:
        function = call.get("function") or {}
        key, told = call.get("index"), call.get("id") or None
        if key is None:
            key = told or len(self._calls)
        started, known = self._calls.get(key, (None, None))
        if started is None and told is None and not function.get("name"):
            # Some servers give the index or the id only with the first piece of a call.
            started = self._last_call
        found: list[ModelEvent | None] = []
        # Some servers give every call the index 0.
        if started is None or (told is not None and known is not None and told != known):
            started = self._parts.start_call(told, function["name"])
            self._calls[key] = self._calls[told or key] = (started, told)
            self._last_call = started
            found.append(started)
        found.append(self._parts.add(started, as_text(function.get("arguments"))))
        return found

    def _finish(self) -> Reply:
        # Some servers send `stop` for a reply with calls.
        stop_reason = _STOP_REASONS.get(self._stop_reason)
        if self._refused:
            stop_reason = "refusal"
        if stop_reason is None:
            stop_reason = "tool_use" if self._parts.has_calls else "end_turn"
        return self._parts.reply(stop_reason, self._usage, self._model)
