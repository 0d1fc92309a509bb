"""Hostile model servers: their responses are limited, for every protocol."""

from __future__ import annotations

import asyncio
import gzip
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

import pytest

from agents.engine.prompt.window import (
    MIN_WINDOW,
    MOST_BYTES,
    MOST_PARTS,
    MOST_VALUES,
    ReplyLimits,
    check_reply,
    note_overflow,
    window_of,
)
from agents.providers.anthropic.stream import ReplyBuilder
from agents.providers.base import (
    ModelLimits,
    PartDelta,
    PartStarted,
    PromptHead,
    Provider,
    ProviderError,
    Reply,
    Usage,
)
from agents.providers.errors import retry_after
from agents.providers.event_stream import MAX_EVENT_BYTES, MAX_STREAM_BYTES, EventDecoder
from agents.providers.registry import ProviderSettings, get_provider
from agents.providers.reply_parts import parse_input
from agents.providers.transport import MAX_BODY_BYTES
from agents.spec import AgentSpec
from agents.structured_output.levels import MOST_LEVELS

HEADERS = "HTTP/1.1 {} x\r\nContent-Type: {}\r\nConnection: close\r\n{}\r\n"
PART = b"data: " + b"x" * 65_530


@contextmanager
def serving(write: Callable[[Any], int]) -> Iterator[tuple[str, list[int]]]:
    """Serve requests with `write`; yield the URL, and the results of `write`.

    At the end of the block, all writes have ended.
    """
    taken: list[int] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            with suppress(OSError):
                taken.append(write(self.wfile))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = False
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", taken
        finally:
            server.shutdown()


def pours(status: int, kind: str, part: bytes, extra: str = "") -> Callable[[Any], int]:
    """Write until the client stops reading. A client that takes all of it is a result."""

    def write(to: Any) -> int:
        to.write(HEADERS.format(status, kind, extra).encode())
        return sum(to.write(part) for _ in range(2 * MAX_STREAM_BYTES // len(part)))

    return write


def ask(provider_name: str, url: str) -> ProviderError:
    """Return the error of a call to this server."""

    async def talk() -> ProviderError:
        provider = get_provider(
            provider_name, ProviderSettings(api_key="k", base_url=url, stall_timeout=20)
        )
        conversation = provider.conversation(PromptHead(model="m", system="s", max_tokens=10))
        conversation.append("user", '[{"type":"text","text":"hi"}]')
        try:
            with pytest.raises(ProviderError) as caught:
                async for _ in provider.stream(conversation):
                    pass
        finally:
            await provider.close()
        return caught.value

    return asyncio.run(talk())


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "openai-responses", "google"])
def test_an_event_without_end(name: str) -> None:
    with serving(pours(200, "text/event-stream", PART)) as (url, taken):
        error = ask(name, url)
    assert taken == []
    assert (error.code, error.retryable) == ("malformed_stream", False)
    assert f"{MAX_EVENT_BYTES:,}" in error.message


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "google"])
def test_an_error_without_end(name: str) -> None:
    with serving(pours(500, "application/json", b"x" * 65_536)) as (url, taken):
        error = ask(name, url)
    assert taken == []
    assert error.code in ("connection", "server_error")
    assert len(error.message) < 5_000


def test_an_error_that_unpacks_to_gigabytes() -> None:
    packed = gzip.compress(b"x" * 100_000_000) * 10
    assert len(packed) < MAX_BODY_BYTES

    def write(to: Any) -> int:
        to.write(HEADERS.format(500, "application/json", "Content-Encoding: gzip\r\n").encode())
        to.write(packed)
        return len(packed)

    with serving(write) as (url, _):
        error = ask("openai-chat", url)
    assert error.code == "connection"


def test_a_list_of_models_without_end() -> None:
    async def limits(url: str) -> ModelLimits:
        provider = get_provider("openai-chat", ProviderSettings(api_key="k", base_url=url))
        try:
            return await provider.limits("m")
        finally:
            await provider.close()

    with serving(pours(200, "application/json", b"[" * 65_536)) as (url, taken):
        assert asyncio.run(limits(url)) == ModelLimits(None, None)
    assert taken == []


@pytest.mark.parametrize("body", [b"[" * 65_536, b"no JSON", b"\xff"])
@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "google"])
def test_facts_about_a_model_that_cannot_be_read(name: str, body: bytes) -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}

    def write(to: Any) -> int:
        length = f"Content-Length: {len(body)}\r\n"
        return cast(int, to.write(HEADERS.format(200, "application/json", length).encode() + body))

    async def facts(url: str) -> tuple[ModelLimits, str, bool]:
        provider = get_provider(name, ProviderSettings(api_key="k", base_url=url))
        try:
            return (
                await provider.limits("m"),
                await provider.output_format("m", schema),
                await provider.takes_images("m"),
            )
        finally:
            await provider.close()

    with serving(write) as (url, _):
        assert asyncio.run(facts(url)) == (ModelLimits(None, None), "", False)


def test_endless_small_events_are_limited() -> None:
    decoder, event = EventDecoder(), b'data: {"a": 1}\n\n' * 4_096
    list(decoder.decode(event))
    decoder._received = MAX_STREAM_BYTES - 1  # skip the transfer: reading all takes a minute
    with pytest.raises(ProviderError, match="for one reply"):
        list(decoder.decode(event))
    # Many small pieces of an event do not make the decoder read it again for each piece.
    decoder = EventDecoder()
    for _ in range(200_000):
        assert list(decoder.decode(b"data: xxxxxxxxxxxx\n")) == []


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_events_that_are_cut_anywhere(end: bytes) -> None:
    decoder, found = EventDecoder(), []
    for byte in (b'data: {"a": 1}' + end) * 3:
        found += list(decoder.decode(bytes([byte])))
    assert found == [{"a": 1}] * 3


def test_more_than_a_reply_can_be() -> None:
    limits = ReplyLimits()
    for index in range(MOST_PARTS):
        limits.count(PartStarted(index, "tool_input", str(index), "x"))
    with pytest.raises(ProviderError, match="parts"):
        limits.count(PartStarted(MOST_PARTS, "text"))
    limits = ReplyLimits()
    limits.count(PartDelta(0, "text", "é" * (MOST_BYTES // 2)))
    with pytest.raises(ProviderError, match="bytes"):
        limits.count(PartDelta(0, "text", "x"))


@pytest.mark.parametrize(
    "given",
    [
        {f"k{number}": 1 for number in range(MOST_VALUES + 1)},
        {"a": {"b": [[0] * 1_000] * (MOST_VALUES // 1_000)}},
        {"a": [[[]] * 10] * (MOST_VALUES // 10)},
    ],
    ids=["fields", "items", "lists"],
)
def test_inputs_over_the_limit_are_refused(given: dict[str, Any]) -> None:
    """285,000 fields took 180 MB of a worker, since each copy of an input has all of them."""
    call = {"type": "tool_use", "id": "1", "name": "x", "input": given}
    text = {"type": "text", "text": "x"}
    check_reply(Reply([text, {**call, "input": {"a": [0] * 50_000}}], "end_turn", Usage(), "m"))
    with pytest.raises(ProviderError, match="fields and items"):
        check_reply(Reply([text, call], "end_turn", Usage(), "m"))


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_an_input_that_nests_deeper_than_readers_follow() -> None:
    """Inputs of 200 to 950 levels could be read, and then not be stored as events."""
    call = {"type": "tool_use", "id": "1", "name": "x", "input": {"a": nested(MOST_LEVELS - 1)}}
    check_reply(Reply([call], "end_turn", Usage(), "m"))
    assert parse_input(json.dumps(call["input"])) == call["input"]
    for levels in (MOST_LEVELS, 300, 900):
        deep = {**call, "input": {"a": nested(levels)}}
        with pytest.raises(ProviderError, match="deeper than 64 levels"):
            check_reply(Reply([deep], "end_turn", Usage(), "m"))
        with pytest.raises(ValueError, match="too deep"):
            parse_input(json.dumps(deep["input"]))


@pytest.mark.parametrize("levels", [900, 100_000])
def test_a_deeply_nested_event_is_not_an_internal_error(levels: int) -> None:
    builder, text = ReplyBuilder(), "[" * levels + "]" * levels
    for event in (
        {"type": "message_start", "message": {"model": "m"}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "1", "name": "x", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": f'{{"a": {text}}}'},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ):
        builder.add(event)
    assert builder.reply is not None
    assert list(builder.reply.broken_inputs) == ["1"]
    check_reply(builder.reply)
    with pytest.raises(ProviderError, match="an event is not"):
        list(EventDecoder().decode(f"data: {text}\n\n".encode()))


@pytest.mark.parametrize(
    "figures",
    [{"output_tokens": -5_000_000}, {"input_tokens": 10**30}, {"output_tokens": "7"}],
    ids=str,
)
def test_figures_that_would_give_a_budget_back(figures: dict[str, Any]) -> None:
    builder = ReplyBuilder()
    for event in (
        {"type": "message_start", "message": {"model": "m", "usage": figures}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ):
        builder.add(event)
    assert builder.reply is not None
    with pytest.raises(ProviderError, match="figures"):
        check_reply(builder.reply)


@pytest.mark.parametrize(
    ("model", "reason"),
    [("m" * 201, "end_turn"), ("m\x00", "end_turn"), ("m", "r" * 51), (7, "end_turn")],
)
def test_names_that_no_row_takes(model: Any, reason: str) -> None:
    with pytest.raises(ProviderError, match="no name"):
        check_reply(Reply([], reason, Usage(), model))


class Told:
    """A provider that reports any limits."""

    def __init__(self, said: ModelLimits) -> None:
        self._said = said

    async def limits(self, model: str) -> ModelLimits:
        return self._said


def told(said: Any) -> Provider:
    return cast("Provider", Told(ModelLimits(said, said)))


@pytest.mark.parametrize("said", [10**400, -1, "many", 0, True])
def test_a_window_that_cannot_be(said: Any) -> None:
    spec = AgentSpec(slug="a", name="A", provider="anthropic", model="nobody-knows")
    usual = asyncio.run(window_of(told(None), spec))
    assert asyncio.run(window_of(told(said), spec)) == usual


def test_invalid_numbers_in_errors_are_ignored() -> None:
    provider = told(None)
    spec = AgentSpec(slug="a", name="A", provider="anthropic", model="nobody-knows")
    usual = asyncio.run(window_of(provider, spec))
    for words in ("tokens > " + "9" * 5_000, f"context length is {'1' * 5_000}"):
        note_overflow(provider, spec.model, ProviderError(words, code="context_window"))
    assert asyncio.run(window_of(provider, spec)) == usual
    note_overflow(provider, spec.model, ProviderError(f"9 > {MIN_WINDOW}", code="context_window"))
    assert asyncio.run(window_of(provider, spec)).size == MIN_WINDOW
    for date in ("Mon, 01 Jan 0001 00:00:00 -0000", "Fri, 31 Dec 9999 23:59:59 -2359", "inf"):
        assert (retry_after({"retry-after": date}) or 0) >= 0
    assert json.dumps(retry_after({"retry-after-ms": "nan"})) == "0.0"
