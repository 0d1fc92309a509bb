"""Convert the events of a stream to a `Reply`.

The SDK would build pydantic models for every event, which takes more CPU than the rest of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from agents.providers.base import (
    Block,
    ModelEvent,
    PartDelta,
    PartKind,
    PartStarted,
    ProviderError,
    Reply,
    Usage,
)
from agents.providers.errors import CONTEXT_WINDOW, malformed, retry_after
from agents.providers.reply_parts import encodable, parse_input

_PART_KINDS: dict[str, PartKind] = {
    "text": "text",
    "thinking": "reasoning",
    "tool_use": "tool_input",
}
_USAGE_FIELDS = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cache_read", "cache_read_input_tokens"),
    ("cache_write", "cache_creation_input_tokens"),
)


class ReplyBuilder:
    """Collects the events of one reply. `reply` is set after the last one."""

    def __init__(self) -> None:
        self.reply: Reply | None = None
        self._blocks: dict[int, Block] = {}
        self._kinds: dict[int, PartKind] = {}
        self._deltas: dict[int, list[str]] = {}
        self._broken_inputs: dict[str, str] = {}
        self._usage = Usage()
        self._model = ""
        self._stop_reason = ""

    def add(self, event: dict[str, Any]) -> ModelEvent | None:
        """Add one event; return the event for watchers, or None.

        Raises `ProviderError` for an `error` event and for events out of order.
        """
        try:
            match event.get("type"):
                case "content_block_delta":
                    return self._delta(event["index"], event["delta"])
                case "content_block_start":
                    return self._start(event["index"], event["content_block"])
                case "content_block_stop":
                    self._stop(event["index"])
                case "message_start":
                    self._model = event["message"].get("model", "")
                    self._count(event["message"].get("usage"))
                case "message_delta":
                    self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                    self._count(event.get("usage"))
                case "message_stop":
                    self.reply = self._finish()
                case "error":
                    _raise(event["error"])
                case None if "error" in event:  # llama.cpp omits the type
                    _raise(event["error"])
        except (KeyError, TypeError, AttributeError) as error:
            raise malformed(f"{error!r} in event {str(event)[:200]}") from error
        return None

    def _start(self, index: int, block: Block) -> ModelEvent | None:
        self._blocks[index] = {name: value for name, value in block.items() if value is not None}
        self._deltas[index] = []
        kind = _PART_KINDS.get(block["type"])
        if kind is None:
            return None
        self._kinds[index] = kind
        if kind == "tool_input":
            return PartStarted(index, kind, block["id"], block["name"])
        return PartStarted(index, kind)

    def _delta(self, index: int, delta: dict[str, Any]) -> ModelEvent | None:
        match delta["type"]:
            case "text_delta":
                text = encodable(delta["text"])
                self._deltas[index].append(delta["text"])
            case "input_json_delta":
                text = delta["partial_json"]
                self._deltas[index].append(text)
            case "thinking_delta":
                text = delta["thinking"]
                self._deltas[index].append(text)
            case "signature_delta":
                block = self._blocks[index]
                block["signature"] = block.get("signature", "") + delta["signature"]
                return None
            case "citations_delta":
                self._blocks[index].setdefault("citations", []).append(delta["citation"])
                return None
            case _:
                return None
        return PartDelta(index, self._kinds[index], text) if text and index in self._kinds else None

    def _stop(self, index: int) -> None:
        block, text = self._blocks[index], "".join(self._deltas.pop(index))
        if block["type"] == "text":
            block["text"] = encodable(block.get("text", "") + text)
        elif block["type"] == "thinking":
            block["thinking"] = block.get("thinking", "") + text
        elif text and "input" in block:
            try:
                block["input"] = parse_input(text)
            except (ValueError, RecursionError):
                block["input"] = {}
                self._broken_inputs[block["id"]] = text

    def _count(self, figures: dict[str, Any] | None) -> None:
        """Update the usage. Figures are cumulative, and missing ones do not change."""
        for field, name in _USAGE_FIELDS:
            if figures and figures.get(name) is not None:
                setattr(self._usage, field, figures[name])

    def _finish(self) -> Reply:
        if self._deltas:
            raise malformed(f"the message ends while block {min(self._deltas)} is open")
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        # The API sometimes sends empty texts, but refuses them in requests.
        blocks = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
        calls = any(block["type"] == "tool_use" for block in blocks)
        stop_reason = self._stop_reason or ("tool_use" if calls else "end_turn")
        return Reply(blocks, stop_reason, self._usage, self._model, self._broken_inputs)


def _raise(error: dict[str, Any]) -> NoReturn:
    raise event_error(error.get("type", ""), error.get("message", "") or str(error))


_STATUS_CODES = {
    401: "authentication",
    402: "permission",
    403: "permission",
    404: "not_found",
    413: "too_large",
    429: "rate_limited",
    529: "overloaded",
}

_TYPE_CODES = {
    "authentication_error": "authentication",
    "billing_error": "permission",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "invalid_request_error": "invalid_request",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
}

_RETRYABLE_STATUS = {408, 409, 429}
_RETRYABLE_CODES = {"rate_limited", "overloaded", "server_error"}


def status_error(status: int, message: str, headers: Mapping[str, str]) -> ProviderError:
    """Return the error for a response with another status than 200."""
    retryable = status in _RETRYABLE_STATUS or status >= 500
    code = _STATUS_CODES.get(status) or ("server_error" if retryable else "invalid_request")
    if code in {"invalid_request", "too_large"} and CONTEXT_WINDOW.search(message):
        code = "context_window"
    if headers.get("x-should-retry") == "false":
        retryable = False
    return ProviderError(message, code=code, retryable=retryable, retry_after=retry_after(headers))


def event_error(error_type: str, message: str) -> ProviderError:
    """Return the error for an `error` event in a stream with the status 200."""
    code = _TYPE_CODES.get(error_type, "server_error")
    if code == "invalid_request" and CONTEXT_WINDOW.search(message):
        code = "context_window"
    return ProviderError(message, code=code, retryable=code in _RETRYABLE_CODES)
