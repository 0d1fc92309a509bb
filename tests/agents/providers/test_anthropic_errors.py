"""Replies that fail."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.anthropic.stream import status_error
from agents.providers.base import ProviderError
from tests.agents.providers.calls import HEAD, ask, failure, reply_of, said
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Fault, FaultKind, ToolUse, Turn, error_event, http_error


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "authentication", False),
        (402, "permission", False),
        (403, "permission", False),
        (404, "not_found", False),
        (409, "server_error", True),
        (413, "too_large", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (504, "server_error", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_determines_whether_to_retry(status: int, code: str, retryable: bool) -> None:
    error = failure([Turn(fault=http_error(status, "the server's own words"))])
    assert (error.code, error.retryable) == (code, retryable)
    assert error.message == "the server's own words"
    assert error.retry_after is None


def test_the_server_s_wish_for_a_pause_is_handed_on() -> None:
    assert failure([Turn(fault=http_error(429, retry_after="7"))]).retry_after == 7
    assert failure([Turn(fault=http_error(529, retry_after="0.5"))]).retry_after == 0.5
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    wish = failure([Turn(fault=http_error(429, retry_after=in_an_hour))]).retry_after
    assert wish is not None
    assert 3000 < wish <= 3600
    assert failure([Turn(fault=http_error(429, retry_after="soon"))]).retry_after is None
    assert status_error(429, "", {"retry-after-ms": "250"}).retry_after == 0.25


def test_a_server_that_forbids_retries_is_obeyed() -> None:
    fault = Fault("status", 429, "rate_limit_error", headers=(("x-should-retry", "false"),))
    error = failure([Turn(fault=fault)])
    assert (error.code, error.retryable) == ("rate_limited", False)


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 208310 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_a_prompt_that_does_not_fit_has_its_own_code(message: str) -> None:
    error = failure([Turn(fault=http_error(400, message))])
    assert (error.code, error.retryable, error.message) == ("context_window", False, message)


def test_a_real_overlong_prompt_has_that_code_too() -> None:
    with (
        MessagesServer([Turn("Hi")], context_window=100) as server,
        pytest.raises(ProviderError, match="tokens > 100 maximum") as caught,
    ):
        ask(server, text="word " * 1000)
    assert caught.value.code == "context_window"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("drop_before_headers", "connection"),
        ("drop_mid_stream", "connection"),
        ("malformed_stream", "malformed_stream"),
        ("truncated", "malformed_stream"),
    ],
)
def test_a_broken_stream_may_be_tried_again(kind: FaultKind, code: str) -> None:
    for turn in (
        Turn("A sentence in pieces.", fault=Fault(kind)),
        Turn(tool_uses=[ToolUse("ls", {"path": "/a"})], fault=Fault(kind)),
    ):
        error = failure([turn])
        assert (error.code, error.retryable) == (code, True)


@pytest.mark.parametrize("kind", ["hang_before_headers", "hang_mid_stream"])
def test_a_silent_server_is_a_stalled_one(kind: FaultKind) -> None:
    error = failure([Turn("A sentence in pieces.", fault=Fault(kind))], stall_timeout=0.2)
    assert (error.code, error.retryable) == ("stalled", True)
    assert "nothing for 0.2 seconds" in error.message


@pytest.mark.slow
def test_a_slow_server_that_keeps_sending_is_not_stalled() -> None:
    with MessagesServer([Turn("abcdefghijkl", pieces=12, chunk_delay=0.15)]) as server:
        assert ask(server, stall_timeout=1.2)


@pytest.mark.parametrize(
    ("error_type", "code", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("api_error", "server_error", True),
        ("rate_limit_error", "rate_limited", True),
        ("timeout_error", "server_error", True),
        ("invalid_request_error", "invalid_request", False),
        ("authentication_error", "authentication", False),
    ],
)
def test_an_error_event_is_an_error(error_type: str, code: str, retryable: bool) -> None:
    error = failure([Turn("A sentence.", fault=error_event(error_type, "in the middle"))])
    assert (error.code, error.retryable, error.message) == (code, retryable, "in the middle")


def test_a_missing_server_is_a_connection_error() -> None:
    with MessagesServer([]) as server:
        pass
    with pytest.raises(
        ProviderError, match=r"no connection to the model at 127\.0\.0\.1:"
    ) as caught:
        ask(server)
    assert (caught.value.code, caught.value.retryable) == ("connection", True)


def test_a_page_instead_of_a_stream_is_reported() -> None:
    page = Fault("status", 200, body=b"<html>Please log in</html>")
    error = failure([Turn(fault=page)])
    assert error.code == "malformed_stream"
    assert "got text/html; is the base URL right?" in error.message


def test_a_proxy_s_error_page_is_a_server_error() -> None:
    error = failure([Turn(fault=Fault("status", 502, body=b"<html>Bad gateway</html>"))])
    assert (error.code, error.retryable) == ("server_error", True)
    assert "Bad gateway" in error.message


def test_a_wrong_key_is_reported_in_the_servers_words() -> None:
    with (
        MessagesServer([Turn("Hi")], api_key="another") as server,
        pytest.raises(ProviderError, match="invalid x-api-key") as caught,
    ):
        ask(server)
    assert (caught.value.code, caught.value.retryable) == ("authentication", False)


def test_the_official_api_needs_a_key() -> None:
    for base_url in (None, "https://api.anthropic.com", "https://API.anthropic.com/"):
        with pytest.raises(ProviderError, match="set ANTHROPIC_API_KEY, or use") as caught:
            AnthropicProvider(None, base_url)
        assert caught.value.code == "missing_key"
        assert "--provider scripted" in caught.value.message


def test_a_local_server_needs_and_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "s3cret")
    with MessagesServer([Turn("Hi")]) as server:
        provider = AnthropicProvider(base_url=server.url)
        conversation = provider.conversation(HEAD)
        conversation.append("user", said("Hello"))
        assert asyncio.run(reply_of(provider, conversation)).stop_reason == "end_turn"
    assert "s3cret" not in str(server.requests[0].headers)
