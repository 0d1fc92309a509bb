"""OpenAI's models in the data file, on other servers, and for structured output."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agents.providers.base import ModelLimits, PromptHead, Usage
from agents.providers.openai.models import entries, limits_of, takes_images
from agents.providers.openai.provider import OpenAIProvider
from agents.providers.openai.responses import output_format
from agents.providers.prices import cost, default_thinking, known_limits, reasons
from tests.support.openai_chat_server import ChatServer
from tests.support.openai_rules import check_strict

VLLM = {"object": "list", "data": [{"id": "qwen", "max_model_len": 32768}]}
LLAMA = {
    "models": [{"name": "m.gguf", "capabilities": ["completion", "multimodal"]}],
    "data": [{"id": "m.gguf", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}}],
}
ROUTER = {
    "data": [
        {"id": "other", "context_length": 1},
        {
            "id": "a/b",
            "context_length": 200_000,
            "architecture": {"input_modalities": ["text", "image"]},
            "top_provider": {"max_completion_tokens": 8192},
        },
    ]
}


@pytest.mark.parametrize(
    ("listed", "model", "window", "output", "pictures"),
    [
        (VLLM, "qwen", 32768, None, False),
        (LLAMA, "whatever", 4096, None, True),
        (ROUTER, "a/b", 200_000, 8192, True),
        (ROUTER, "unknown", None, None, False),
        ({"data": "nonsense"}, "x", None, None, False),
        (
            {"data": [{"id": "x", "max_model_len": "many", "capabilities": 5}]},
            "x",
            None,
            None,
            False,
        ),
        ("nonsense", "x", None, None, False),
    ],
)
def test_models_are_read_from_the_servers(
    listed: Any, model: str, window: int | None, output: int | None, pictures: bool
) -> None:
    rows = entries(listed, model)
    assert limits_of(rows) == ModelLimits(window, output)
    assert takes_images(rows) == pictures


def test_a_server_is_asked_once_and_openai_never() -> None:
    with ChatServer([], listed=LLAMA) as server:
        provider = OpenAIProvider(None, f"{server.url}/v1")

        async def ask() -> tuple[ModelLimits, bool]:
            await provider.limits("m.gguf")
            found = await provider.limits("m.gguf"), await provider.takes_images("m.gguf")
            await provider.close()
            return found

        assert asyncio.run(ask()) == (ModelLimits(4096, None), True)
        assert len(server.models_asked) == 1
    official = OpenAIProvider("key")
    assert asyncio.run(official.limits("gpt-6.2-sol")).max_output == 128_000
    assert not asyncio.run(official.takes_images("gpt-nobody-knows"))


def test_long_prompts_cost_more_and_unknown_models_have_no_price() -> None:
    assert cost("gpt-6.2-sol", Usage(input=1_000_000)) == 4  # of more than 272,000 tokens
    assert cost("gpt-6.2-sol", Usage(input=100_000, output=100_000)) == cost(
        "gpt-6.2-sol-2026-11-17", Usage(input=100_000, output=100_000)
    )
    assert cost("gpt-6.2-sol-pro", Usage(input=1)) is None
    assert known_limits("gpt-6.2-sol").context_window == 1_050_000
    assert default_thinking("gpt-6.2-sol") is None
    assert reasons("gpt-6.2-sol")
    assert reasons("gpt-of-next-year")
    assert not reasons("gpt-4.1-mini")


def test_reasoning_is_asked_for_only_where_there_is_some() -> None:
    provider = OpenAIProvider("key")
    for model, asked in (("gpt-6.2-sol", True), ("gpt-4.1", False)):
        body = json.loads(provider.conversation(PromptHead(model, "")).body() or b"{}")
        assert ("include" in body) == asked
        assert body["store"] is False


STRICT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "enum": ["a", "b"]},
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
            },
        },
    },
    "required": ["name", "rows"],
}


def test_a_form_is_asked_for_as_the_server_takes_it() -> None:
    form = json.loads(output_format(STRICT))
    assert (form["type"], form["name"], form["strict"]) == ("json_schema", "answer", True)
    check_strict(form["schema"])


@pytest.mark.parametrize(
    "change",
    [
        {"required": ["name"]},  # an optional field would be required
        {"additionalProperties": True},  # and additional fields would be forbidden
        {"minProperties": 1},
        {"type": "array"},
        {"properties": {}, "required": []},
        {"properties": {"x": {"type": "string", "format": "uri"}}, "required": ["x"]},
        {"properties": {"x": {}}, "required": ["x"]},
        {"properties": {"x": {"allOf": [{"type": "string"}]}}, "required": ["x"]},
    ],
)
def test_schemas_with_another_meaning_stay_in_the_prompt(change: dict[str, Any]) -> None:
    assert output_format(STRICT | change) == ""


def test_only_openai_s_own_models_are_asked_for_a_form() -> None:
    official, local = OpenAIProvider("key"), OpenAIProvider(None, "http://127.0.0.1:9/v1")
    assert asyncio.run(official.output_format("gpt-6.2-sol", STRICT))
    assert not asyncio.run(official.output_format("gpt-nobody-knows", STRICT))
    assert not asyncio.run(local.output_format("gpt-6.2-sol", STRICT))
