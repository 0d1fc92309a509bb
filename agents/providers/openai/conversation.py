"""Common parts of the conversations of OpenAI's two protocols.

The start of the prompt stays the same, byte for byte (invariant 5 in
docs/contributing/architecture.md). The head is serialised once. The items of a message are derived
from its canonical blocks when it is appended, and depend only on them. A request is a join of these
fragments.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from typing import Any, Literal

from agents.providers.base import Block, PromptHead, Role, excess_bytes, is_foreign

_CALL_ID = re.compile(r"[A-Za-z0-9_-]+")

OpenAIWire = Literal["responses", "chat"]
"""OpenAI's protocols."""


def encode(value: object) -> str:
    """Return JSON text, always the same for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class OpenAIConversation(ABC):
    """An append-only `Conversation`.

    `origin` names the API whose thoughts are sent back to it. `call_ids` has the ids of all tool
    calls so far.
    """

    path: str
    """Path of the requests, below the base URL."""
    longest_id: int

    def __init__(self, head: PromptHead, origin: str) -> None:
        self.origin = origin
        self.call_ids: set[str] = set()
        text = encode(self._request(head))
        self._head = text.removesuffix("]}").encode()
        self._items = bytearray()
        self._open = b""
        """The end of the last item, if it is a user message to which more can be added; else empty.
        """
        self._excess = 0

    @property
    def size(self) -> int:
        """See `Conversation.size`."""
        return len(self._head) + len(self._items) - self._excess

    def append(self, role: Role, blocks_json: str) -> None:
        """See `Conversation.append`. Thoughts of another API are left out."""
        blocks = json.loads(blocks_json)
        if not isinstance(blocks, list) or not blocks:
            raise ValueError(
                f"a message needs a JSON array of blocks, not empty; got {blocks_json[:80]!r}"
            )
        kept = [block for block in blocks if not is_foreign(block, self.origin)]
        blocks_json.encode()  # an error must come before any change
        if role == "assistant":
            self._add_reply(kept)
            self.call_ids |= {block["id"] for block in kept if block["type"] == "tool_use"}
        else:
            self._add_user(kept)
            self._excess += excess_bytes(blocks_json)

    def body(self) -> bytes:
        """Return the body of the request: always the same bytes."""
        return b"".join((self._head, self._items, self._open, b"]}"))

    def wire_id(self, call_id: str) -> str:
        """Return a call's id for this server.

        Ids of other providers may be longer, or have dots.
        """
        if len(call_id) <= self.longest_id and _CALL_ID.fullmatch(call_id):
            return call_id
        return "call_" + hashlib.sha256(call_id.encode()).hexdigest()[:24]

    @abstractmethod
    def _request(self, head: PromptHead) -> dict[str, Any]:
        """Return the request.

        Its last field is the array of messages, at most with the first one.
        """

    @abstractmethod
    def _add_reply(self, blocks: list[Block]) -> None: ...

    @abstractmethod
    def _add_user(self, blocks: list[Block]) -> None: ...

    def _add(self, item: str, end: bytes = b"") -> None:
        """Add an item. With `end`, it remains open, and `item` lacks the end."""
        self._items += self._open
        if self._items or not self._head.endswith(b"["):
            self._items += b","
        self._items += item.encode()
        self._open = end


def parameters(schema: Block) -> Block:
    """Return a tool's schema for the API: an object must have properties, even if empty."""
    return schema if "properties" in schema else {**schema, "properties": {}}


def data_url(block: Block) -> str:
    """Return a picture as a URL. Raises `ValueError` if the block does not contain its bytes."""
    source = block["source"]
    if source["type"] != "base64":
        raise ValueError(f"a picture needs its bytes; got a source {source['type']!r}")
    return f"data:{source['media_type']};base64,{source['data']}"


def result_parts(block: Block) -> list[Block]:
    """Return the text and image blocks of a tool_result. An error's text starts with "Error"."""
    content = block.get("content", "")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if block.get("is_error"):
        first = parts[0]["text"] if parts and parts[0]["type"] == "text" else ""
        if not first.lower().startswith("error"):
            parts.insert(0, {"type": "text", "text": "Error:"})
    return parts


def unknown(block: Block) -> ValueError:
    """Return the error for a block that is not valid in its message."""
    return ValueError(f"no place for a block of the type {block.get('type')!r} here")
