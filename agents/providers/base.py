"""The interface between the engine and a language model.

A provider turns a `PromptHead` and an append-only list of messages into one streamed reply.
Canonical content blocks are the Messages API's blocks (text, thinking, redacted_thinking, tool_use,
tool_result, image); a provider with another wire format derives its own from them. Data that this
provider must get back unchanged is in thinking and redacted_thinking blocks with its `origin`.

A model gets back only the thoughts of its own API.

Thinking and redacted_thinking blocks of the Messages API are the canonical ones. Those of another
API have an `origin` with its name and host, and additional data for it. An epoch has one model, and
the history omits the thoughts of earlier epochs; this module handles other cases, such as another
base URL for the same agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["user", "assistant"]
PartKind = Literal["text", "reasoning", "tool_input"]
Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PromptHead:
    """The part of the prompt that is byte-identical within an epoch of a thread.

    `tools` has `{"name", "description", "input_schema"}` dictionaries in the order for the model.
    `thinking` and `effort` are passed on in the provider's own terms; None omits them.
    """

    model: str
    system: str
    tools: tuple[Block, ...] = ()
    max_tokens: int = 16_000
    thinking: Block | None = None
    effort: str | None = None
    temperature: float | None = None
    output_format: str = ""
    """The result of `Provider.output_format`: JSON text with a fixed order."""
    cache_key: str = ""
    """A constant of the thread that reveals nothing about it, for caches that accept a hint."""
    caches: bool = True
    """Whether the provider is asked to cache the prompt."""


@dataclass(slots=True)
class Usage:
    """Tokens of one model call. `input` excludes tokens read from or written to the cache.

    `reasoning` is the part of `output` for thoughts, if the server reports it.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class PartStarted:
    """The start of a content block. `call_id` and `tool` are set for kind `tool_input` only."""

    index: int
    kind: PartKind
    call_id: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True)
class PartDelta:
    """More text of block `index`; for `tool_input` a piece of its JSON."""

    index: int
    kind: PartKind
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The last event of a stream: the whole reply.

    `blocks` are canonical and are sent back to the model unchanged (thinking blocks with their
    signatures). `stop_reason` is the Messages API's term: end_turn, tool_use, max_tokens,
    stop_sequence, pause_turn, refusal, model_context_window_exceeded. A tool_use block whose
    streamed JSON is invalid has `input` {}, and `broken_inputs` maps its id to the received text.
    """

    blocks: list[Block]
    stop_reason: str
    usage: Usage
    model: str
    broken_inputs: dict[str, str] = field(default_factory=dict)


ModelEvent = PartStarted | PartDelta | Reply


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Limits of a model in tokens: prompt and output; None if unknown."""

    context_window: int | None = None
    max_output: int | None = None


class ProviderError(Exception):
    """A model call failed.

    `message` is the server's own and may be shown. `retryable`: the same call may succeed later;
    `retry_after` is the server's requested pause in seconds. Codes: rate_limited, overloaded,
    server_error, connection, stalled, malformed_stream (these are usually retryable);
    invalid_request, authentication, permission, not_found, too_large, context_window, missing_key,
    unusable_key, not_installed, unknown_provider.
    """

    def __init__(
        self, message: str, *, code: str, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.retry_after = retry_after


class Conversation(Protocol):
    """The messages of one thread in a provider's wire format.

    Append-only; every block is serialised at most once for any number of requests.
    """

    @property
    def size(self) -> int:
        """Bytes of the next request, including prompt and tools: at least its number of tokens.

        A picture counts at most as `MAX_IMAGE_TOKENS` bytes.
        """

    def append(self, role: Role, blocks_json: str) -> None:
        """Add canonical blocks: a JSON array of objects as text, not empty.

        Adjacent messages of the same role become one message on the wire. Raises `ValueError`, and
        adds nothing, for other text and for text that cannot be encoded as UTF-8.
        """


class Provider(Protocol):
    """One model API. Instances are created once per process and have the connection pool."""

    name: str
    is_scripted: bool
    """True for the offline model: every page with its text shows this."""

    def conversation(self, head: PromptHead) -> Conversation:
        """Return an empty conversation for this head."""

    def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """Make one model call. Yields parts as they arrive and one `Reply` at the end.

        Raises `ProviderError`; it does not retry. Closing the generator (`aclosing`) drops the
        connection immediately.
        """

    async def output_format(self, model: str, schema: Block) -> str:
        """Return the request for answers that fit `schema`, as JSON text for the head.

        Empty if the model does not support it: the prompt must contain the schema then. `schema`
        must be valid for `agents.structured_output`.
        """

    async def takes_images(self, model: str) -> bool:
        """Return whether this model accepts pictures. False if unknown."""

    async def limits(self, model: str) -> ModelLimits:
        """Return the model's limits, as reported by the server, else from `prices.json`."""

    async def close(self) -> None:
        """Release the connections of the running event loop."""


MAX_IMAGE_TOKENS = 5_000
"""More tokens than any picture has. They do not depend on its bytes."""
PIXELS_PER_TOKEN = 750

_BASE64 = '"type":"base64"'
_DATA = re.compile(r'"data":"([A-Za-z0-9+/=]*)"')


def image_tokens(block: Block) -> int:
    """Return a picture's approximate tokens, by its pixels; `MAX_IMAGE_TOKENS` if unknown."""
    source = block.get("source", {})
    width, height = source.get("width"), source.get("height")
    if not isinstance(width, int) or not isinstance(height, int):
        return MAX_IMAGE_TOKENS
    return min(width * height // PIXELS_PER_TOKEN + 50, MAX_IMAGE_TOKENS)


def excess_bytes(blocks_json: str) -> int:
    """Return how many bytes of pictures in `blocks_json` exceed their tokens.

    The remaining bytes are still at least as many as the tokens.
    """
    if _BASE64 not in blocks_json:
        return 0
    return sum(max(0, len(found[1]) - MAX_IMAGE_TOKENS) for found in _DATA.finditer(blocks_json))


ORIGIN = "origin"
_MARK = f'"{ORIGIN}":'
_THOUGHTS = ("thinking", "redacted_thinking")


def is_foreign(block: Block, origin: str | None) -> bool:
    """Return whether a block is a thought of another API than `origin` (None: the Messages API)."""
    return block.get("type") in _THOUGHTS and block.get(ORIGIN) != origin


def without_foreign(blocks_json: str) -> str:
    """Return an assistant's blocks for the Messages API, as JSON text; possibly `[]`.

    The text is parsed only if it may contain foreign thoughts.
    """
    if _MARK not in blocks_json:
        return blocks_json
    blocks = json.loads(blocks_json)
    if not any(is_foreign(block, None) for block in blocks):
        return blocks_json
    kept = [block for block in blocks if not is_foreign(block, None)]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
