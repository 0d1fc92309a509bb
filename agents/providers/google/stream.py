"""Convert the chunks of a Gemini API stream to a `Reply`.

Calls arrive complete, often without an id: then one is generated. Several chunks of a text are one
block, but a part with a signature is never merged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agents.ids import new_id
from agents.providers.base import (
    ORIGIN,
    Block,
    ModelEvent,
    PartDelta,
    PartKind,
    PartStarted,
    ProviderError,
    Reply,
    Usage,
)
from agents.providers.errors import malformed
from agents.providers.google.conversation import MADE
from agents.providers.google.errors import event_error
from agents.providers.reply_parts import encodable, parse_input
from agents.structured_output.levels import nests_too_deep

_ENDINGS = {
    "STOP": "end_turn",
    "FINISH_REASON_UNSPECIFIED": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
}
_BROKEN = frozenset(
    {
        "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE", "OTHER",
    }
)  # fmt: skip
"""Finish reasons of unusable replies; another attempt may succeed.

All other unknown ones are a filter's: safety, recitation, a listed word.
"""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Ids that all other APIs accept, since a fallback may continue with them."""


class ReplyBuilder:
    """Collects the chunks of one reply.

    `model` is the requested model. `origin` names the API: signed thoughts go back only to it.
    """

    def __init__(self, model: str, origin: str) -> None:
        self._model = model
        self._origin = origin
        self._blocks: list[Block] = []
        self._texts: list[str] = []
        self._open: PartKind | None = None
        self._ids: set[str] = set()
        self._broken_inputs: dict[str, str] = {}
        self._usage = Usage()
        self._ending = ""
        self._blocked = False

    @property
    def has_ended(self) -> bool:
        """Whether the server has sent a finish reason. Usage figures may still follow."""
        return bool(self._ending) or self._blocked

    def add(self, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        """Add one chunk; yield events for watchers. Raises `ProviderError`."""
        if "error" in chunk:
            raise event_error(chunk["error"] if isinstance(chunk["error"], dict) else chunk)
        try:
            self._count(chunk.get("usageMetadata") or {})
            self._model = str(chunk.get("modelVersion") or self._model)
            if (chunk.get("promptFeedback") or {}).get("blockReason"):
                self._blocked = True
            for candidate in (chunk.get("candidates") or [])[:1]:
                for part in (candidate.get("content") or {}).get("parts") or []:
                    yield from self._part(part)
                self._ending = str(candidate.get("finishReason") or self._ending)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise malformed(f"{error!r} in {str(chunk)[:200]}") from error

    def finish(self) -> Reply:
        """Return the reply after the end of the stream.

        Raises `ProviderError` if it is incomplete.
        """
        self._close()
        if not self.has_ended:
            raise malformed("it ended before a finish reason")
        if self._ending in _BROKEN:
            raise malformed(f"the model ended with {self._ending}")
        if self._ending == "MISSING_THOUGHT_SIGNATURE":
            raise ProviderError(
                "a call in the conversation lacks its thought signature", code="invalid_request"
            )
        stop = "refusal" if self._blocked else _ENDINGS.get(self._ending, "refusal")
        self._drop_blanks()
        if stop == "refusal":  # calls of a filtered reply are not carried out
            blocks = [block for block in self._blocks if block["type"] == "text"]
            return Reply(blocks, stop, self._usage, self._model)
        calls = any(block["type"] == "tool_use" for block in self._blocks)
        if calls and stop == "end_turn":
            stop = "tool_use"
        return Reply(self._blocks, stop, self._usage, self._model, self._broken_inputs)

    def _part(self, part: dict[str, Any]) -> Iterator[ModelEvent]:
        signature = part.get("thoughtSignature") or ""
        if not isinstance(signature, str):
            raise TypeError("a signature is text")
        if "functionCall" in part:
            self._sign(signature)
            yield from self._call(part["functionCall"])
        elif "text" in part:
            self._sign(signature)
            yield from self._text("reasoning" if part.get("thought") else "text", part["text"])
            if signature:
                self._close()
        elif signature:
            self._sign(signature)

    def _sign(self, signature: str) -> None:
        """Insert a signature before the part that it came with."""
        if signature:
            self._close()
            block = {"type": "redacted_thinking", "data": signature, ORIGIN: self._origin}
            self._blocks.append(block)

    def _text(self, kind: PartKind, text: str) -> Iterator[ModelEvent]:
        text = encodable(text)
        if text and self._open != kind:
            self._close()
            self._open = kind
            if kind == "text":
                self._blocks.append({"type": "text", "text": ""})
            else:
                thought = {"type": "thinking", "thinking": "", "signature": ""}
                self._blocks.append({**thought, ORIGIN: self._origin})
            yield PartStarted(len(self._blocks) - 1, kind)
        if text:
            self._texts.append(text)
            yield PartDelta(len(self._blocks) - 1, kind, text)

    def _call(self, call: dict[str, Any]) -> Iterator[ModelEvent]:
        self._close()
        name, told, args = call["name"], call.get("id"), call.get("args") or {}
        if not isinstance(name, str):
            raise TypeError("a function has a name")
        usable = isinstance(told, str) and _ID.fullmatch(told) and told not in self._ids
        call_id = str(told) if usable else MADE + new_id()
        self._ids.add(call_id)
        if nests_too_deep(args):
            raise TypeError("the input of a call nests too deep")
        text = json.dumps(args, ensure_ascii=False, separators=(",", ":"))
        try:
            text.encode()
            args = parse_input(text)
        except (ValueError, RecursionError):
            args, text = {}, encodable(text)
            self._broken_inputs[call_id] = text
        index = len(self._blocks)
        self._blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": args})
        yield PartStarted(index, "tool_input", call_id, name)
        yield PartDelta(index, "tool_input", text)

    def _drop_blanks(self) -> None:
        """Remove blank texts, which other APIs refuse: a fallback would send them.

        A blank text directly after a `redacted_thinking` block stays.
        """
        self._blocks = [
            block
            for at, block in enumerate(self._blocks)
            if block["type"] != "text"
            or block["text"].strip()
            or (at and self._blocks[at - 1]["type"] == "redacted_thinking")
        ]

    def _close(self) -> None:
        """Close the open text."""
        if self._open is not None:
            name = "text" if self._open == "text" else "thinking"
            self._blocks[-1][name] = encodable("".join(self._texts))
            self._texts.clear()
            self._open = None

    def _count(self, told: dict[str, Any]) -> None:
        """Replace the usage: figures are cumulative."""
        if not told:
            return
        cached = told.get("cachedContentTokenCount") or 0
        prompt = (told.get("promptTokenCount") or 0) + (told.get("toolUsePromptTokenCount") or 0)
        thoughts = told.get("thoughtsTokenCount") or 0
        output = (told.get("candidatesTokenCount") or 0) + thoughts
        figures = (max(0, prompt - cached), output, cached, 0, thoughts)
        if not all(isinstance(each, int) and each >= 0 for each in figures):
            raise TypeError("tokens are counted in whole numbers")
        self._usage = Usage(*figures)
