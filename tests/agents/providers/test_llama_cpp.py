"""A real llama.cpp server with a real model, in its three protocols.

VEL_TEST_LLAMA_SERVER is the program `llama-server`, VEL_TEST_LLAMA_MODEL a GGUF file of any chat
model. The tests do not check the model's text, only that each side understands the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import (
    Block,
    ModelEvent,
    PartDelta,
    PromptHead,
    Provider,
    ProviderError,
    Reply,
)
from agents.providers.openai.provider import OpenAIProvider
from tests.agents.providers.contract.asking import LS, NOW, dump, result, text
from tests.support.hang import HANG

PROGRAM = os.environ.get("VEL_TEST_LLAMA_SERVER", "")
MODEL = os.environ.get("VEL_TEST_LLAMA_MODEL", "")
WINDOW = 2048

pytestmark = [
    pytest.mark.storm,
    pytest.mark.skipif(
        not (Path(PROGRAM).is_file() and Path(MODEL).is_file()),
        reason="needs llama.cpp: set VEL_TEST_LLAMA_SERVER and VEL_TEST_LLAMA_MODEL",
    ),
]

PROVIDERS: dict[str, Callable[[str], Provider]] = {
    "openai-chat": lambda url: OpenAIProvider(None, f"{url}/v1"),
    "openai-responses": lambda url: OpenAIProvider(None, f"{url}/v1", wire="responses"),
    "anthropic": lambda url: AnthropicProvider(None, url),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--host 127.0.0.1 --port {port} -c {WINDOW} -np 1 -t 2 --jinja --seed 7 --temp 0"
    log = (tmp_path_factory.mktemp("llama") / "log").open("wb")
    command = [PROGRAM, "-m", MODEL, *options.split()]
    with log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/health", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    last = time.monotonic() + HANG
    while time.monotonic() < last and server.poll() is None:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, ConnectionError):
            time.sleep(0.2)  # an external program: there is no event to wait for
    pytest.fail(f"llama-server did not get ready (exit code {server.poll()})")


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest, url: str) -> Provider:
    return PROVIDERS[request.param](url)


def head(**changes: object) -> PromptHead:
    fields = {"model": Path(MODEL).name, "system": "You are a clerk.", "max_tokens": 24}
    return PromptHead(**(fields | changes))  # type: ignore[arg-type]


def ask(
    provider: Provider, told: list[tuple[str, list[Block]]], head: PromptHead
) -> list[ModelEvent]:
    async def call() -> list[ModelEvent]:
        conversation = provider.conversation(head)
        for role, blocks in told:
            conversation.append(role, dump(blocks))  # type: ignore[arg-type]
        try:
            return [event async for event in provider.stream(conversation)]
        finally:
            await provider.close()

    return asyncio.run(call())


def test_it_answers(provider: Provider) -> None:
    *parts, reply = ask(provider, [("user", [text("What is the capital of France?")])], head())
    assert isinstance(reply, Reply)
    shown = "".join(part.text for part in parts if isinstance(part, PartDelta))
    assert shown.strip()
    assert reply.stop_reason in {"end_turn", "max_tokens"}
    assert [block["type"] for block in reply.blocks] == ["text"]
    assert reply.blocks[0]["text"] == shown
    assert 0 < reply.usage.output <= 24
    assert reply.usage.input + reply.usage.cache_read > 10


def test_it_takes_a_history_with_calls(provider: Provider) -> None:
    uses = [
        {"type": "tool_use", "id": "call_1", "name": "ls", "input": {"path": "/a"}},
        {"type": "tool_use", "id": "call_2", "name": "now", "input": {}},
    ]
    told: list[tuple[str, list[Block]]] = [
        ("user", [text("Look.")]),
        ("assistant", [text("I look."), *uses]),
        ("user", [result("call_1", "b.txt"), result("call_2", "no clock", is_error=True)]),
        ("user", [text("And?")]),
    ]
    reply = ask(provider, told, head(tools=(LS, NOW)))[-1]
    assert isinstance(reply, Reply)
    assert reply.stop_reason in {"end_turn", "max_tokens", "tool_use"}
    json.dumps(reply.blocks, ensure_ascii=False).encode()


def test_the_earlier_part_of_a_request_is_read_from_the_cache(provider: Provider) -> None:
    told: list[tuple[str, list[Block]]] = [("user", [text("A long story. " * 40)])]
    first = ask(provider, told, head(max_tokens=16))[-1]
    assert isinstance(first, Reply)
    told += [("assistant", [text("Yes.")]), ("user", [text("Go on.")])]
    second = ask(provider, told, head(max_tokens=16))[-1]
    assert isinstance(second, Reply)
    if second.usage.cache_read:  # not every protocol of every release reports this
        assert second.usage.cache_read > 50
        assert second.usage.input < 100


def test_a_prompt_that_does_not_fit_has_its_own_code(provider: Provider) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(provider, [("user", [text("many words " * WINDOW)])], head())
    assert (caught.value.code, caught.value.retryable) == ("context_window", False)


def test_it_reports_its_context_window(url: str) -> None:
    provider = PROVIDERS["openai-chat"](url)

    async def limits() -> tuple[int | None, bool]:
        try:
            told = await provider.limits("whatever it is called")
            return told.context_window, await provider.takes_images("whatever it is called")
        finally:
            await provider.close()

    window, _ = asyncio.run(limits())
    assert window == WINDOW
