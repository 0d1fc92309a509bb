"""The blocks of a streamed reply, for both of OpenAI's protocols."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any

from agents.providers.base import Block, PartDelta, PartStarted, Reply, Usage
from agents.providers.reply_parts import encodable, parse_input

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_TOKENS = 1_000_000_000
"""A larger number in a report is ignored as an error of the server."""


class ReplyBlocks:
    """The canonical blocks of a reply. A block's index is its position, set when it starts.

    `used_ids` are the ids of earlier calls in the conversation: some servers restart the numbers in
    each reply, and others send no ids.
    """

    def __init__(self, used_ids: set[str]) -> None:
        self.blocks: list[Block] = []
        self._texts: dict[int, list[str]] = {}
        self._broken: dict[str, str] = {}
        self._used_ids = set(used_ids)

    def start_text(self) -> PartStarted:
        return PartStarted(self._open({"type": "text", "text": ""}), "text")

    def start_thoughts(self, block: Block | None = None) -> PartStarted:
        empty = {"type": "thinking", "thinking": ""}
        return PartStarted(self._open(empty | (block or {})), "reasoning")

    def start_call(self, call_id: object, name: str) -> PartStarted:
        """Start a call with the server's id, or with a generated one."""
        if not isinstance(name, str):
            raise TypeError("a call's name is a text")
        taken = isinstance(call_id, str) and _CALL_ID.fullmatch(call_id)
        own = (
            str(call_id) if taken and call_id not in self._used_ids else f"call_{uuid.uuid4().hex}"
        )
        self._used_ids.add(own)
        index = self._open({"type": "tool_use", "id": own, "name": name, "input": {}})
        return PartStarted(index, "tool_input", own, name)

    def put(self, block: Block) -> None:
        """Add a block without events for watchers."""
        self.blocks.append(block)

    def add(self, started: PartStarted, text: str) -> PartDelta | None:
        """Add text to a block. Raises `TypeError` if it is not text."""
        if not isinstance(text, str):
            raise TypeError("a delta is a text")
        if not text:
            return None
        self._texts[started.index].append(text)
        shown = text if started.kind == "tool_input" else encodable(text)
        return PartDelta(started.index, started.kind, shown)

    def text_of(self, started: PartStarted) -> str:
        """Return the text of a block so far."""
        return "".join(self._texts[started.index])

    def reply(self, stop_reason: str, usage: Usage, model: str) -> Reply:
        """Return the whole reply, without blank texts."""
        for index, pieces in self._texts.items():
            self._finish(self.blocks[index], "".join(pieces))
        blocks = [
            block for block in self.blocks if block["type"] != "text" or block["text"].strip()
        ]
        return Reply(blocks, stop_reason, usage, model, self._broken)

    @property
    def has_calls(self) -> bool:
        return any(block["type"] == "tool_use" for block in self.blocks)

    def _open(self, block: Block) -> int:
        index = len(self.blocks)
        self.blocks.append(block)
        self._texts[index] = []
        return index

    def _finish(self, block: Block, text: str) -> None:
        if block["type"] == "text":
            block["text"] = encodable(text)
        elif block["type"] == "thinking":
            block["thinking"] = encodable(text)
        elif text.strip():
            try:
                block["input"] = parse_input(text)
            except (ValueError, RecursionError):
                self._broken[block["id"]] = text


def usage_of(figures: Mapping[str, Any] | None, prompt: str, output: str) -> Usage:
    """Return the tokens by fields of both protocols, with the prefixes `prompt` and `output`."""
    if not isinstance(figures, Mapping):
        return Usage()
    told = _details(figures, f"{prompt}_tokens_details")
    read, written = _figure(told, "cached_tokens"), _figure(told, "cache_write_tokens")
    whole = _figure(figures, f"{prompt}_tokens")
    thought = _figure(_details(figures, f"{output}_tokens_details"), "reasoning_tokens")
    return Usage(
        input=max(0, whole - read - written),
        output=_figure(figures, f"{output}_tokens"),
        cache_read=read,
        cache_write=written,
        reasoning=thought,
    )


def _details(figures: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = figures.get(name)
    return found if isinstance(found, Mapping) else {}


def _figure(figures: Mapping[str, Any], name: str) -> int:
    found = figures.get(name)
    return found if type(found) is int and 0 <= found <= MOST_TOKENS else 0


def as_text(arguments: object) -> str:
    """Return a call's arguments as text. Some servers send an object."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
