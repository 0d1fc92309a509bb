"""Failed replies, for every provider."""

from __future__ import annotations

import pytest

from agents.providers.base import ProviderError
from tests.agents.providers.contract.asking import Talk, failure, say, text
from tests.agents.providers.contract.wires import KEY, Wire
from tests.support.messages_script import Fault, FaultKind, ToolUse, Turn, http_error

RETRYABLE = {"rate_limited", "overloaded", "server_error", "connection", "stalled"}


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "authentication", False),
        (402, "permission", False),
        (403, "permission", False),
        (404, "not_found", False),
        (408, "server_error", True),
        (409, "server_error", True),
        (413, "too_large", False),
        (422, "invalid_request", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (502, "server_error", True),
        (504, "server_error", True),
    ],
)
def test_a_status_determines_whether_to_retry(
    wire: Wire, status: int, code: str, retryable: bool
) -> None:
    error = failure(wire, Turn(fault=http_error(status, "the server's own words")))
    assert (error.code, error.retryable) == (code, retryable)
    assert error.message == "the server's own words"
    assert error.retry_after is None


def test_named_errors_of_the_api_have_their_codes(wire: Wire) -> None:
    for code, fault in wire.errors.items():
        error = failure(wire, Turn(fault=fault))
        assert (error.code, error.retryable) == (code, code in RETRYABLE), fault


def test_errors_in_the_middle_of_a_stream(wire: Wire) -> None:
    for code, fault in wire.stream_errors.items():
        error = failure(wire, Turn("A sentence in pieces.", fault=fault))
        assert (error.code, error.retryable) == (code, code in RETRYABLE), fault
        assert error.message == fault.message


def test_the_server_s_wish_for_a_pause_is_handed_on(wire: Wire) -> None:
    assert failure(wire, Turn(fault=http_error(429, retry_after="7"))).retry_after == 7
    precise = Fault("status", 429, "", headers=(("retry-after-ms", "250"),))
    assert failure(wire, Turn(fault=precise)).retry_after == 0.25


def test_a_server_that_forbids_retries_is_obeyed(wire: Wire) -> None:
    error = failure(wire, Turn(fault=Fault("status", 429, headers=(("x-should-retry", "false"),))))
    assert (error.code, error.retryable) == ("rate_limited", False)


def test_a_real_overlong_prompt_has_its_own_code(wire: Wire) -> None:
    talk = Talk(wire, [Turn("Hi")], context_window=100)
    with pytest.raises(ProviderError) as caught, talk:
        talk.ask(text("word " * 2000))
    assert (caught.value.code, caught.value.retryable) == ("context_window", False)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("drop_before_headers", "connection"),
        ("drop_mid_stream", "connection"),
        ("malformed_stream", "malformed_stream"),
        ("truncated", "malformed_stream"),
    ],
)
def test_a_broken_stream_may_be_tried_again(wire: Wire, kind: FaultKind, code: str) -> None:
    for turn in (
        Turn("A sentence in pieces.", fault=Fault(kind)),
        Turn(tool_uses=[ToolUse("ls", {"path": "/a"})], fault=Fault(kind)),
    ):
        error = failure(wire, turn)
        assert (error.code, error.retryable) == (code, True)


@pytest.mark.parametrize("kind", ["hang_before_headers", "hang_mid_stream"])
def test_a_silent_server_is_a_stalled_one(wire: Wire, kind: FaultKind) -> None:
    error = failure(wire, Turn("A sentence in pieces.", fault=Fault(kind)), stall_timeout=0.2)
    assert (error.code, error.retryable) == ("stalled", True)
    assert "nothing for 0.2 seconds" in error.message


def test_a_missing_server_is_a_connection_error(wire: Wire) -> None:
    with Talk(wire, []) as talk:
        say(talk.conversation, text("Hello"))
    with pytest.raises(
        ProviderError, match=r"no connection to the model at 127\.0\.0\.1:"
    ) as caught:
        talk.events()
    assert (caught.value.code, caught.value.retryable) == ("connection", True)


def test_a_page_instead_of_a_stream_is_reported(wire: Wire) -> None:
    error = failure(wire, Turn(fault=Fault("status", 200, body=b"<html>Please log in</html>")))
    assert error.code == "malformed_stream"
    assert "got text/html; is the base URL right?" in error.message


def test_a_proxy_s_error_page_is_a_server_error(wire: Wire) -> None:
    error = failure(wire, Turn(fault=Fault("status", 502, body=b"<html>Bad gateway</html>")))
    assert (error.code, error.retryable) == ("server_error", True)
    assert "Bad gateway" in error.message


def test_a_wrong_key_is_reported_in_the_servers_words_without_the_key(wire: Wire) -> None:
    secret = "sk-wrong-0123456789-secret"
    talk = Talk(wire, [Turn("Hi")])
    talk.options = {"api_key": secret}
    with pytest.raises(ProviderError) as caught, talk:
        talk.ask(text("Hello"))
    assert (caught.value.code, caught.value.retryable) == ("authentication", False)
    assert secret not in f"{caught.value.message} {caught.value!r} {caught.value.__cause__!r}"


def test_a_server_that_repeats_the_key_is_not_quoted(wire: Wire) -> None:
    words = f"you sent Authorization: Bearer {KEY}, which I repeat"
    kind = Fault("status", 400, "invalid_request_error", words)
    event = Fault("error_event", 0, "invalid_request_error", words, code="invalid_prompt")
    for fault in (kind, event):
        error = failure(wire, Turn("A sentence in pieces.", fault=fault))
        assert "which I repeat" in error.message
        assert KEY not in f"{error.message} {error} {error!r} {error.__cause__!r}"


def test_a_redirect_is_not_followed(wire: Wire) -> None:
    """A server cannot direct the key or the conversation to another address."""
    with wire.server([Turn("Hi")]) as elsewhere:
        moved = Fault("status", 307, headers=(("location", f"{elsewhere.url}/v1/elsewhere"),))
        error = failure(wire, Turn(fault=moved))
        assert not error.retryable
        assert elsewhere.requests == []
        assert elsewhere.accepted == 0


def test_closing_the_stream_drops_the_connection(wire: Wire) -> None:
    import asyncio

    with Talk(wire, [Turn("A long text. " * 50, pieces=50, chunk_delay=0.05)]) as talk:
        say(talk.conversation, text("Hello"))

        async def leave() -> None:
            events = talk.provider.stream(talk.conversation)
            await anext(events)
            await events.aclose()
            await talk.provider.close()

        asyncio.run(leave())
        assert talk.server.wait_for(gone=1)


def test_one_connection_serves_many_calls(wire: Wire) -> None:
    import asyncio

    with Talk(wire, [Turn("One."), Turn("Two."), Turn("Three.")]) as talk:

        async def ask() -> None:
            for _ in range(3):
                conversation = talk.provider.conversation(talk.head)
                say(conversation, text("Hello"))
                async for _ in talk.provider.stream(conversation):
                    pass
            await talk.provider.close()

        asyncio.run(ask())
        assert talk.server.accepted == 1
