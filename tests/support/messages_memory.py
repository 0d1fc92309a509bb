"""The state of the Messages API between requests: thinking signatures and the prompt cache.

Both depend on prefixes: tools, then system, then every block of every message, without the cache
marks. A thinking block is valid only after the prefix with which it was produced. The cache is read
at a prefix that was written before.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from tests.support.messages_validation import Refused

CACHE_LOOKBACK = 20
"""The number of blocks before a breakpoint in which the cache searches for a written prefix."""

BYTES_PER_TOKEN = 4
_NOTHING = b""


@dataclass(frozen=True)
class Unit:
    """The prompt up to and including one tool, system block or message block."""

    digest: bytes
    end: int
    """The number of bytes up to here."""
    marked: bool
    """Whether it has a cache breakpoint."""


@dataclass(frozen=True)
class Produced:
    """A thinking block as it was sent, and the prefix it belongs to."""

    block: dict[str, Any]
    prefix: bytes


class Memory:
    """The state that one server keeps over all conversations."""

    def __init__(self) -> None:
        self._produced: dict[str, Produced] = {}
        self._thinking_of_call: dict[str, list[dict[str, Any]]] = {}
        self._cached: set[bytes] = set()
        self._signatures = 0

    def check_thinking(self, request: dict[str, Any]) -> None:
        """Raise `Refused` if a thinking block is foreign, altered, moved or missing."""
        digest = _head_digest(request)
        for index, message in enumerate(request["messages"]):
            for position, block in enumerate(_content(message)):
                if block["type"] in {"thinking", "redacted_thinking"}:
                    self._check_block(block, digest, f"messages.{index}.content.{position}")
                digest = _extend(digest, message["role"], block)
        self._check_latest(request["messages"])

    def _check_block(self, block: dict[str, Any], prefix: bytes, where: str) -> None:
        known = self._produced.get(block.get("signature") or block.get("data", ""))
        if known is None or known.block != block:
            raise Refused(f"{where}: Invalid `signature` in `{block['type']}` block")
        if known.prefix != prefix:
            raise Refused(
                f"{where}: Invalid `signature` in `{block['type']}` block. The block is bound to "
                "a different conversation. Remove the block, or set "
                '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
            )

    def _check_latest(self, messages: list[dict[str, Any]]) -> None:
        """Check that, inside a tool loop, the latest reply has all of its thinking or none."""
        if len(messages) < 2:
            return
        blocks = _content(messages[-2])
        present = [block for block in blocks if block["type"].endswith("thinking")]
        for block in blocks:
            expected = self._thinking_of_call.get(block.get("id", ""), present)
            if present and present != expected:
                raise Refused(
                    f"messages.{len(messages) - 2}.content.0: `thinking` or `redacted_thinking` "
                    "blocks in the latest assistant message cannot be modified. These blocks must "
                    "remain as they were in the original response."
                )

    def sign(self, request: dict[str, Any], blocks: list[dict[str, Any]]) -> None:
        """Sign the thinking blocks of a reply to `request`, in place, and remember them."""
        digest = _units(request)[-1].digest
        for block in blocks:
            if block["type"] == "thinking":
                self._signatures += 1
                block["signature"] = f"sig{self._signatures}+{digest.hex()[:40]}=="
                self._produced[block["signature"]] = Produced(dict(block), digest)
            elif block["type"] == "redacted_thinking":
                self._produced[block["data"]] = Produced(dict(block), digest)
            if block.get("text", "x").strip():  # an empty text is not sent back
                digest = _extend(digest, "assistant", block)
        thinking = [dict(block) for block in blocks if block["type"].endswith("thinking")]
        for block in blocks:
            if block["type"] == "tool_use":
                self._thinking_of_call[block["id"]] = thinking

    def usage(self, request: dict[str, Any]) -> dict[str, int]:
        """Return the input figures of this request, and update the cache."""
        units = _units(request)
        marks = [index for index, unit in enumerate(units) if unit.marked]
        read = 0
        for mark in marks:
            for unit in units[max(0, mark - CACHE_LOOKBACK + 1) : mark + 1]:
                if unit.digest in self._cached:
                    read = max(read, unit.end)
        written = units[marks[-1]].end if marks else 0
        self._cached.update(units[mark].digest for mark in marks)
        return {
            "input_tokens": (units[-1].end - max(written, read)) // BYTES_PER_TOKEN,
            "cache_creation_input_tokens": max(0, written - read) // BYTES_PER_TOKEN,
            "cache_read_input_tokens": read // BYTES_PER_TOKEN,
        }


def prompt_tokens(request: dict[str, Any]) -> int:
    """Return the estimated number of tokens of the whole prompt."""
    return _units(request)[-1].end // BYTES_PER_TOKEN


def check_length(request: dict[str, Any], window: int) -> None:
    """Raise `Refused` if the prompt, or the prompt and the reply, may exceed the window."""
    tokens, reply = prompt_tokens(request), request["max_tokens"]
    if tokens > window:
        raise Refused(f"prompt is too long: {tokens} tokens > {window} maximum")
    if tokens + reply > window:
        raise Refused(
            f"input length and `max_tokens` exceed context limit: {tokens} + {reply} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )


def _content(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[dict[str, Any]] = content
    return blocks


def _head(request: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    system = request.get("system", [])
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    return [("tool", tool) for tool in request.get("tools", [])] + [
        ("system", block) for block in system
    ]


def _serialised(role: str, block: dict[str, Any]) -> bytes:
    bare = {name: value for name, value in block.items() if name != "cache_control"}
    return role.encode() + json.dumps(bare, sort_keys=True).encode()


def _extend(digest: bytes, role: str, block: dict[str, Any]) -> bytes:
    return hashlib.blake2b(digest + _serialised(role, block)).digest()


def _head_digest(request: dict[str, Any]) -> bytes:
    digest = _NOTHING
    for role, block in _head(request):
        digest = _extend(digest, role, block)
    return digest


def _units(request: dict[str, Any]) -> list[Unit]:
    parts = _head(request) + [
        (message["role"], block) for message in request["messages"] for block in _content(message)
    ]
    units: list[Unit] = []
    digest, end = _NOTHING, 0
    for index, (role, block) in enumerate(parts):
        data = _serialised(role, block)
        digest = hashlib.blake2b(digest + data).digest()
        end += len(data)
        last = index == len(parts) - 1 and bool(request.get("cache_control"))
        units.append(Unit(digest, end, bool(block.get("cache_control")) or last))
    return units
