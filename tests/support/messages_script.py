"""The answers of the loopback Messages API: turns, faults and ready-made scripts.

Standard library only: benchmarks use this server with peers in other environments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

FaultKind = Literal[
    "status",
    "drop_before_headers",
    "drop_mid_stream",
    "hang_before_headers",
    "hang_mid_stream",
    "malformed_stream",
    "truncated",
    "error_event",
]

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}

_ASSISTANT = re.compile(rb'"role"\s*:\s*"assistant"')


@dataclass(frozen=True)
class Fault:
    """A deliberate fault.

    A fault of a stream happens after its first text or input delta, so that some text has been
    shown. `error_type` and `message` fill the error of kinds `status` and `error_event`; a `body`
    replaces the whole error body (a proxy's HTML page). `code` is for protocols whose errors have
    one besides their type.
    """

    kind: FaultKind
    status: int = 500
    error_type: str = ""
    message: str = "made to fail by the test"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    code: str | None = None


def http_error(
    status: int, message: str = "made to fail by the test", *, retry_after: str | None = None
) -> Fault:
    """Return a response with this status and the error type that belongs to it."""
    headers = (("retry-after", retry_after),) if retry_after is not None else ()
    return Fault("status", status, ERROR_TYPES.get(status, "api_error"), message, headers)


def error_event(error_type: str, message: str = "made to fail by the test") -> Fault:
    """Return an `error` event in the middle of a stream that started normally."""
    return Fault("error_event", error_type=error_type, message=message)


@dataclass(frozen=True)
class ToolUse:
    """A tool call of the model. An `input` that is text is streamed unchanged, valid or not."""

    name: str
    input: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class Turn:
    """One reply. The order of blocks is thinking, redacted thinking, text, tool uses.

    `pieces` is the number of deltas of a text, `chunk_delay` the pause before each of them in
    seconds. `usage` replaces single figures of the usage that the server calculates. `thinking=""`
    is the form of hidden thinking: no text, only a signature.
    """

    text: str = ""
    tool_uses: Sequence[ToolUse] = ()
    thinking: str | None = None
    redacted_thinking: str | None = None
    stop_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    pieces: int = 4
    chunk_delay: float = 0.0
    fault: Fault | None = None


@dataclass
class Request:
    """A request as received. `number` counts from 0 over the life of the server."""

    number: int
    headers: dict[str, str]
    body: bytes

    @cached_property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.json["messages"]
        return messages

    @property
    def replies(self) -> int:
        """Return the number of assistant messages. It is counted in the bytes, which is fast."""
        return len(_ASSISTANT.findall(self.body))


Script = Callable[[Request], Turn]


class ScriptExhausted(Exception):
    """A request arrived after the last turn of a list."""


def in_order(turns: Sequence[Turn]) -> Script:
    """Play the turns in the order of requests, across all conversations."""
    remaining: Iterator[Turn] = iter(list(turns))

    def next_turn(request: Request) -> Turn:
        try:
            return next(remaining)
        except StopIteration:
            raise ScriptExhausted(
                f"request {request.number} came after the last of {len(turns)} scripted turns"
            ) from None

    return next_turn


def by_reply(turns: Sequence[Turn]) -> Script:
    """Choose the turn by the number of replies so far: for several conversations and retries."""

    def turn_for(request: Request) -> Turn:
        if request.replies >= len(turns):
            raise ScriptExhausted(
                f"the conversation has {request.replies} replies, the script {len(turns)}"
            )
        return turns[request.replies]

    return turn_for


def tool_loop(
    calls: int,
    tool: str = "read_file",
    tool_input: dict[str, Any] | None = None,
    *,
    text: str = "Let me look at the next file.",
    answer: str = "All files are read.",
    pieces: int = 8,
) -> Script:
    """Call one tool `calls` times, then answer. For benchmarks."""
    arguments = {"path": "notes.txt"} if tool_input is None else tool_input
    calling = Turn(text=text, tool_uses=(ToolUse(tool, arguments),), pieces=pieces)
    answering = Turn(text=answer, pieces=pieces)

    def turn_for(request: Request) -> Turn:
        return calling if request.replies < calls else answering

    return turn_for
