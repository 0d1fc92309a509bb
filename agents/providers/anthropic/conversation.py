"""The messages of one thread as bytes of a Messages API request.

The start of the prompt stays the same, byte for byte (invariant 5 in
docs/contributing/architecture.md). The head is serialised once, every block is copied once, and a
request is a join of these fragments. Cache marks are inserted for each request; the fragments never
contain them.
"""

from __future__ import annotations

import json
from typing import Literal

from agents.providers.base import Block, PromptHead, Role, excess_bytes, without_foreign

CacheBreakpoint = Literal["top_level", "block", "none"]
"""The place of the moving cache breakpoint: `top_level` (a `cache_control` field of the request,
for which api.anthropic.com chooses the place), `block` (on the request's last block), or `none`.
"""

SAMPLING_API_VERSION = "2023-06-01"
"""The last version of the API that accepts `temperature`; later ones answer 400."""

_CACHE_CONTROL = {"type": "ephemeral"}
_MARK = b',"cache_control":{"type":"ephemeral"}}'


class AnthropicConversation:
    """An append-only `Conversation`. `headers` are added to every request."""

    def __init__(self, head: PromptHead, cache_breakpoint: CacheBreakpoint) -> None:
        self.headers = (
            {} if head.temperature is None else {"anthropic-version": SAMPLING_API_VERSION}
        )
        self._cache_breakpoint: CacheBreakpoint = cache_breakpoint if head.caches else "none"
        self._head = _serialise_head(head, self._cache_breakpoint)
        self._messages = bytearray()
        self._excess = 0
        self._open_role: Role | None = None
        self._previous_end = 0

    @property
    def size(self) -> int:
        """See `Conversation.size`."""
        return len(self._head) + len(self._messages) - self._excess

    def append(self, role: Role, blocks_json: str) -> None:
        """See `Conversation.append`. The text must be valid JSON: it is not parsed again.

        Thoughts of another API are left out.
        """
        array = blocks_json.strip()
        if role == "assistant":
            array = without_foreign(array)
            if array == "[]" != blocks_json.strip():
                return  # only thoughts of another API
        inner = array[1:-1].strip()
        if (array[:1], inner[:1], inner[-1:], array[-1:]) != ("[", "{", "}", "]"):
            raise ValueError(
                f"a message needs a JSON array of blocks, not empty; got {blocks_json[:80]!r}"
            )
        encoded = inner.encode()
        if role == self._open_role:
            self._messages += b","
        else:
            if self._open_role == "user":
                self._previous_end = len(self._messages)
            self._messages += b"]}," if self._open_role else b""
            self._messages += b'{"role":"%b","content":[' % role.encode()
            self._open_role = role
        self._messages += encoded
        if role == "user":  # the model's output has no pictures, even if it looks like one
            self._excess += excess_bytes(inner)

    def body(self) -> bytes:
        """Return the body of the request: always the same bytes.

        It has two breakpoints: the end of this request and the end of the one before. The cache is
        searched only some twenty blocks back, and one turn with many tool calls has more.
        """
        ends = []
        if self._cache_breakpoint != "none" and self._previous_end:
            ends.append(self._previous_end)
        if self._cache_breakpoint == "block" and self._open_role == "user":
            ends.append(len(self._messages))
        fragments: list[bytes | bytearray] = [self._head]
        start = 0
        for end in ends:
            fragments += (self._messages[start : end - 1], _MARK)
            start = end
        fragments += (self._messages[start:], b"]}]}")
        return b"".join(fragments)


def _serialise_head(head: PromptHead, cache_breakpoint: CacheBreakpoint) -> bytes:
    """Return everything before the messages, up to the bracket that opens them."""
    request: dict[str, object] = {
        "model": head.model,
        "max_tokens": head.max_tokens,
        "stream": True,
    }
    if head.thinking is not None:
        request["thinking"] = head.thinking
    output_config: Block = {} if head.effort is None else {"effort": head.effort}
    if head.output_format:
        output_config["format"] = json.loads(head.output_format)
    if output_config:
        request["output_config"] = output_config
    if head.temperature is not None:
        request["temperature"] = head.temperature
    if cache_breakpoint == "top_level":
        request["cache_control"] = _CACHE_CONTROL
    system: Block = {"type": "text", "text": head.system}
    tools = [dict(tool) for tool in head.tools]
    if cache_breakpoint != "none":  # the end of the part that all threads of an agent share
        shared = [system] if head.system else tools[-1:]
        for last in shared:
            last["cache_control"] = _CACHE_CONTROL
    if head.system:
        request["system"] = [system]
    if tools:
        request["tools"] = tools
    request["messages"] = []
    text = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    return text.removesuffix("]}").encode()
