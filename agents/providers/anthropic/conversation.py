"""The messages of one thread as bytes of a Messages API request.

Invariant 5: the prefix of the prompt is byte-stable. The head is serialised once, every block is
copied once, and a request is a join of these fragments. Cache marks are put in between when a
request is made; the fragments never contain them.
"""

from __future__ import annotations

import json
from typing import Literal

from agents.providers.base import Block, PromptHead, Role
from agents.providers.pictures import excess_bytes
from agents.providers.thoughts import without_foreign

CacheBreakpoint = Literal["top_level", "block", "none"]
"""Who places the moving cache breakpoint: the server (a `cache_control` field beside the
messages: api.anthropic.com), the request (on its last block), or nobody."""

SAMPLING_API_VERSION = "2023-06-01"
"""The last version of the API that takes `temperature`; later ones answer 400."""

_CACHE_CONTROL = {"type": "ephemeral"}
_MARK = b',"cache_control":{"type":"ephemeral"}}'


class AnthropicConversation:
    """Append-only; see `Conversation`. `headers` go with every request."""

    def __init__(self, head: PromptHead, cache_breakpoint: CacheBreakpoint) -> None:
        self.headers = (
            {} if head.temperature is None else {"anthropic-version": SAMPLING_API_VERSION}
        )
        self._cache_breakpoint = cache_breakpoint
        self._head = _serialise_head(head, cache_breakpoint)
        self._messages = bytearray()
        self._excess = 0
        self._open_role: Role | None = None
        self._previous_end = 0

    @property
    def size(self) -> int:
        """See `Conversation.size`."""
        return len(self._head) + len(self._messages) - self._excess

    def append(self, role: Role, blocks_json: str) -> None:
        """See `Conversation.append`. The text is trusted to be JSON: it is not parsed again.

        Thoughts of another API are left out.
        """
        array = blocks_json.strip()
        if role == "assistant":
            array = without_foreign(array)
            if array == "[]" != blocks_json.strip():
                return  # thoughts of another API, and nothing else
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
        if role == "user":  # what a model writes is text, whatever it looks like
            self._excess += excess_bytes(inner)

    def body(self) -> bytes:
        """The request as it goes to the server: the same bytes as often as it is asked.

        Two breakpoints: where this request ends and where the one before it ended. The cache is
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
    """Everything before the messages, ending in the bracket that opens them."""
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
    if cache_breakpoint != "none":  # the end of what all threads of an agent share
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
