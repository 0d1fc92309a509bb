"""The seam between the engine and a language model.

A provider turns a `PromptHead` and an append-only list of messages into one streamed reply.
Canonical content blocks are the Messages API's blocks (text, thinking, redacted_thinking,
tool_use, tool_result, image); a provider with another wire format derives its own from them.
What such a provider wants back unseen is in thinking and redacted_thinking blocks that bear its
`origin`: see `agents.providers.thoughts`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["user", "assistant"]
PartKind = Literal["text", "reasoning", "tool_input"]
Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PromptHead:
    """What stays byte for byte the same within an epoch of a thread.

    `tools` holds `{"name", "description", "input_schema"}` dictionaries in the order in which
    the model sees them. `thinking` and `effort` are passed on as the provider understands them;
    None leaves them out.
    """

    model: str
    system: str
    tools: tuple[Block, ...] = ()
    max_tokens: int = 16_000
    thinking: Block | None = None
    effort: str | None = None
    temperature: float | None = None
    output_format: str = ""
    """The form of answers as `Provider.output_format` gave it: JSON text, whose order counts."""
    cache_key: str = ""
    """The same for all requests of a thread, and tells nothing of it: where caches want a hint."""


@dataclass(slots=True)
class Usage:
    """Tokens of one model call. `input` excludes what was read from or written to the cache.

    `reasoning` is how many of `output` were thoughts, where the server tells it apart.
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
    """A content block begins. `call_id` and `tool` are set for kind `tool_input` only."""

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

    `blocks` are canonical and go back to the model unchanged (thinking blocks with their
    signatures). `stop_reason` is the Messages API's word: end_turn, tool_use, max_tokens,
    stop_sequence, pause_turn, refusal, model_context_window_exceeded.
    A tool_use block whose streamed JSON did not parse has `input` {} and its id in
    `broken_inputs`, mapped to the text that came.
    """

    blocks: list[Block]
    stop_reason: str
    usage: Usage
    model: str
    broken_inputs: dict[str, str] = field(default_factory=dict)


ModelEvent = PartStarted | PartDelta | Reply


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Tokens that a model takes and gives; None where nobody knows."""

    context_window: int | None = None
    max_output: int | None = None


class ProviderError(Exception):
    """A model call failed.

    `message` is the server's own, fit to be shown. `retryable` says whether the same call may
    succeed later; `retry_after` is the server's wish in seconds. Codes: rate_limited, overloaded,
    server_error, connection, stalled, malformed_stream (these are retryable); invalid_request,
    authentication, permission, not_found, too_large, context_window, missing_key,
    not_installed, unknown_provider.
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
    """The messages of one thread as one provider wants them on the wire.

    Append-only; every block is serialised at most once, however many requests follow.
    """

    @property
    def size(self) -> int:
        """Bytes of the next request, prompt and tools included: no fewer than its tokens.

        Of a picture only so many count as no picture has tokens.
        """

    def append(self, role: Role, blocks_json: str) -> None:
        """Add canonical blocks: a JSON array of objects as text, not empty.

        Neighbours of the same role become one message on the wire. Raises `ValueError` for text
        that is no such array or cannot be encoded as UTF-8, and then adds nothing.
        """


class Provider(Protocol):
    """One model API. Instances are made once per process and hold the connection pool."""

    name: str
    is_scripted: bool
    """True for the offline model: every page that shows its words says so."""

    def conversation(self, head: PromptHead) -> Conversation:
        """An empty conversation for this head."""

    def stream(self, conversation: Conversation) -> AsyncGenerator[ModelEvent, None]:
        """Make one model call. Yields parts as they come and one `Reply` at the end.

        Raises `ProviderError`; never retries by itself. Closing the generator (`aclosing`) drops
        the connection at once.
        """

    async def output_format(self, model: str, schema: Block) -> str:
        """How to ask this model itself for answers that fit `schema`, as JSON text for the head.

        Empty: it cannot be asked so, and the prompt has to say it. `schema` is one that
        `agents.structured_output` takes.
        """

    async def takes_images(self, model: str) -> bool:
        """Whether this model can be shown pictures. False where nobody says so."""

    async def limits(self, model: str) -> ModelLimits:
        """What the model takes, asked of the server where it tells, else from `prices.json`."""

    async def close(self) -> None:
        """Release the connections of the running event loop."""
