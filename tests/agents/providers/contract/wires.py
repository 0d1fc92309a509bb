"""The contract of every provider: one set of tests, run over each wire protocol.

The parts:

- A *wire* (`Wire` below) starts a loopback server of a protocol and makes the provider that calls
  it. The tests in this package take the fixture `wire` and run once for each of `WIRES`. They do
  not depend on a protocol: replies are `Turn`s with `ToolUse`s and `Fault`s
  (`tests.support.messages_script`), which each server converts to its protocol.
- A loopback server is a context manager that is made of turns (or a function of the request) and
  has `url`, `requests`, `violations` and `wait_for` like `MessagesServer`. The others subclass it
  and override `_serves`, `_request`, `_refusal`, `_reply`, `_events`, `_is_delta`, `_is_end`,
  `_broken` and `_send_error`. It checks each request as strictly as the real API (pairing of call
  and result, roles, ids, schemas, unknown fields, foreign thinking blocks), answers invalid
  requests with 400 and the API's message, and lists them in `violations`. A test must not leave
  violations.

To add a provider, write its server in tests/support and add a `Wire` to `WIRES`. `thinks`: the
server sends thinking blocks that have to come back unchanged. `errors`: the API's messages for
failures that the status alone does not identify.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import Provider
from agents.providers.google.provider import GoogleProvider
from agents.providers.openai.provider import OpenAIProvider, OpenAIWire
from tests.support.google_api import GoogleServer
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Fault
from tests.support.openai_chat_server import ChatServer
from tests.support.openai_responses_server import ResponsesServer

KEY = "sk-contract-0123456789abcdef"


@dataclass(frozen=True)
class Wire:
    """One protocol. `provider(server, **options)` calls that server with `KEY`.

    Keyword options of `server`: api_key, context_window. Of `provider`: api_key, stall_timeout.
    """

    name: str
    model: str
    server: Callable[..., MessagesServer]
    provider: Callable[..., Provider]
    errors: Mapping[str, Fault] = field(default_factory=dict)
    """By code of `ProviderError`: context_window, rate_limited, overloaded, permission."""
    stream_errors: Mapping[str, Fault] = field(default_factory=dict)
    """By the same codes: errors in the middle of a stream."""
    thinks: bool = True
    whole_inputs: bool = False
    """The inputs of calls are objects: an invalid one ends the reply, which is requested again."""
    settings_key: str = ""
    """The setting (and environment variable) of its key."""

    def __str__(self) -> str:
        return self.name


def _status(status: int, kind: str, message: str, code: str | None = None) -> Fault:
    return Fault("status", status, kind, message, code=code)


def _event(kind: str, message: str, code: str | None = None) -> Fault:
    return Fault("error_event", 0, kind, message, code=code)


def _anthropic(server: MessagesServer, **options: Any) -> Provider:
    return AnthropicProvider(options.pop("api_key", KEY), server.url, **options)


def _openai(wire: OpenAIWire) -> Callable[..., Provider]:
    def make(server: MessagesServer, **options: Any) -> Provider:
        key = options.pop("api_key", KEY)
        return OpenAIProvider(key, f"{server.url}/v1", wire=wire, **options)

    return make


def _google(server: MessagesServer, **options: Any) -> Provider:
    return GoogleProvider(options.pop("api_key", KEY), server.url, **options)


ANTHROPIC = Wire(
    "anthropic",
    "claude-sonnet-5-5",
    MessagesServer,
    _anthropic,
    errors={
        "context_window": _status(
            400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"
        ),
        "rate_limited": _status(429, "rate_limit_error", "slow down"),
        "overloaded": _status(529, "overloaded_error", "Overloaded"),
        "permission": _status(402, "billing_error", "no money left"),
    },
    stream_errors={
        "overloaded": _event("overloaded_error", "Overloaded"),
        "rate_limited": _event("rate_limit_error", "slow down"),
        "invalid_request": _event("invalid_request_error", "that cannot be"),
        "server_error": _event("api_error", "our fault"),
    },
    settings_key="ANTHROPIC_API_KEY",
)

_OPENAI_ERRORS = {
    "context_window": _status(
        400,
        "invalid_request_error",
        "Your input exceeds the context window of this model. Please adjust your input.",
        "context_length_exceeded",
    ),
    "rate_limited": _status(429, "requests", "Rate limit reached", "rate_limit_exceeded"),
    "overloaded": _status(503, "service_unavailable_error", "Overloaded", "server_is_overloaded"),
    "permission": _status(
        429, "insufficient_quota", "You exceeded your quota", "insufficient_quota"
    ),
    "too_large": _status(
        429,
        "tokens",
        "Request too large for gpt-6.2-sol on tokens per min (TPM): Limit 30000, Requested 90000.",
        "rate_limit_exceeded",
    ),
}
_OPENAI_STREAM_ERRORS = {
    "overloaded": _event("service_unavailable_error", "Overloaded", "server_is_overloaded"),
    "rate_limited": _event("tokens", "Rate limit reached", "rate_limit_exceeded"),
    "context_window": _event("invalid_request_error", "too long", "context_length_exceeded"),
    "invalid_request": _event("invalid_request_error", "Invalid prompt", "invalid_prompt"),
    "server_error": _event("server_error", "our fault", "server_error"),
}

RESPONSES = Wire(
    "openai-responses",
    "gpt-6.2-sol",
    ResponsesServer,
    _openai("responses"),
    errors=_OPENAI_ERRORS,
    stream_errors=_OPENAI_STREAM_ERRORS,
    settings_key="OPENAI_API_KEY",
)
CHAT = Wire(
    "openai-chat",
    "local-model",
    ChatServer,
    _openai("chat"),
    errors=_OPENAI_ERRORS,
    stream_errors=_OPENAI_STREAM_ERRORS,
    settings_key="OPENAI_API_KEY",
)

GOOGLE = Wire(
    "google",
    "gemini-3.8-flash",
    GoogleServer,
    _google,
    errors={
        "context_window": _status(
            400,
            "",
            "The input token count (1300000) exceeds the maximum number of tokens allowed "
            "(1048576).",
        ),
        "rate_limited": _status(429, "", "Resource has been exhausted", "RESOURCE_EXHAUSTED"),
        "overloaded": _status(503, "", "The model is overloaded.", "UNAVAILABLE"),
        "permission": _status(400, "", "Billing is not enabled", "FAILED_PRECONDITION"),
    },
    stream_errors={
        "overloaded": Fault("error_event", 503, "", "overloaded", code="UNAVAILABLE"),
        "rate_limited": Fault("error_event", 429, "", "slow", code="RESOURCE_EXHAUSTED"),
        "invalid_request": Fault("error_event", 400, "", "no", code="INVALID_ARGUMENT"),
        "server_error": Fault("error_event", 500, "", "our fault", code="INTERNAL"),
    },
    whole_inputs=True,
    settings_key="GOOGLE_API_KEY",
)

WIRES = (ANTHROPIC, RESPONSES, CHAT, GOOGLE)
