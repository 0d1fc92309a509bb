"""The context window of a model, and the token limits of texts."""

from __future__ import annotations

import asyncio
import json

import pytest

from agents.engine.prompt.token_count import Meter, estimate_blocks, estimate_tokens, measured
from agents.engine.prompt.window import note_overflow, usable_tokens, window_of
from agents.kernel.window import Window
from agents.providers.base import ModelLimits, PromptHead, ProviderError, Usage
from agents.providers.scripted import ScriptedProvider
from agents.spec import AgentSpec


def spec(model: str, **fields: int) -> AgentSpec:
    return AgentSpec(name="A", slug="a", provider="scripted", model=model, **fields)


class Asked(ScriptedProvider):
    """A provider whose server reports `limits`."""

    def __init__(self, limits: ModelLimits) -> None:
        super().__init__()
        self.told = limits

    async def limits(self, model: str) -> ModelLimits:
        return self.told


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 9000 + 4000 > 12000", 12_000),
        ("the request exceeds the available context size (4096 tokens)", 4_096),
        ("This model's maximum context length is 8192 tokens. However, you asked", 8_192),
        ("prompt is too long: 3 tokens > 7 maximum", 50_000),
        ("prompt is too long", 50_000),
    ],
)
def test_an_error_reveals_the_context_window(message: str, size: int) -> None:
    provider = Asked(ModelLimits(50_000, 4_000))
    note_overflow(provider, "mine", ProviderError(message, code="context_window"))
    assert asyncio.run(window_of(provider, spec("mine"))).size == size
    assert asyncio.run(window_of(provider, spec("other"))).size == 50_000


def test_a_reply_takes_a_fourth_at_most() -> None:
    window = asyncio.run(window_of(Asked(ModelLimits(20_000, 8_000)), spec("mine")))
    assert (window.size, window.output, window.room) == (20_000, 5_000, 15_000)
    window = asyncio.run(window_of(Asked(ModelLimits(None, 2_000)), spec("mine")))
    assert (window.size, window.output) == (200_000, 2_000)
    window = asyncio.run(window_of(Asked(ModelLimits()), spec("claude-sonnet-5-5")))
    assert (window.size, window.output) == (1_000_000, 16_000)


def test_a_model_may_be_kept_below_its_window() -> None:
    window = asyncio.run(window_of(Asked(ModelLimits()), spec("claude-haiku-5-5")))
    assert usable_tokens(window) == 125_000  # COMPACT_AT of this is 100,000
    assert usable_tokens(Window(1_000_000, 16_000)) == 984_000


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("word " * 300, 300),
        ("数豆子。" * 100, 450),
        ("считать бобы " * 100, 600),
        ("🫘" * 100, 230),
    ],
    ids=["english", "chinese", "russian", "emoji"],
)
def test_estimates_are_not_too_low(text: str, real: int) -> None:
    assert real <= estimate_tokens(text) <= real * 5


def test_an_image_counts_as_an_image() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 1_000_000}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [image]}
    assert estimate_blocks(json.dumps([result], separators=(",", ":"))) < 10_000


def test_reported_tokens_count_and_later_ones_are_estimated() -> None:
    meter = Meter(estimated=1_000)
    meter.replied(Usage(input=100, cache_read=700, output=50), '[{"type":"text","text":"Hi"}]')
    assert meter.total == 850
    meter.append("x" * 3_000)
    assert 1_850 <= meter.total <= 1_852


def test_text_that_is_denser_than_estimated_is_learned() -> None:
    meter = Meter(estimated=1_000)
    meter.replied(Usage(input=2_000), "[]")
    meter.append("x" * 3_000)
    assert 3_950 <= meter.total <= 4_010


def test_missing_usage_of_a_server_is_estimated() -> None:
    meter = Meter(estimated=50_000)
    meter.replied(Usage(input=1, output=1), "[]")
    assert meter.total >= 50_000


def test_a_reloaded_conversation_counts_from_its_last_reply() -> None:
    head = PromptHead("m", "system " * 100)
    history = [("user", "[1]"), ("assistant", "[2]"), ("user", "x" * 300)]
    meter = measured(head, history, last=Usage(input=200, output=20))
    assert 320 <= meter.total <= 325
    assert measured(head, history).reported == 0
