"""The cost of calls."""

from __future__ import annotations

from decimal import Decimal
from typing import get_args

import pytest
from anthropic.types.model_param import ModelParam

from agents.providers.base import ModelLimits, Usage
from agents.providers.prices import compact_at, cost, cost_microusd, default_thinking, known_limits
from agents.providers.registry import DEFAULT_MODEL


def test_every_kind_of_token_has_its_price() -> None:
    usage = Usage(input=1_000_000, output=100_000, cache_read=2_000_000, cache_write=400_000)
    assert cost("claude-sonnet-5-5", usage) == Decimal("2") + 1 + Decimal("0.2") + 1
    assert cost("claude-opus-5-5", Usage(output=1)) == Decimal("0.00002")


def test_costs_are_stored_in_millionths_of_a_dollar() -> None:
    assert cost_microusd("claude-sonnet-5-5", Usage(input=3, output=2, cache_read=5)) == 27
    assert cost_microusd("claude-haiku-4-5", Usage()) == 0


def test_an_unknown_price_is_none_and_not_zero() -> None:
    for model in ("my-own-model", "claude-fable-5-2", "claude-sonnet-5-9", "claude", ""):
        assert cost(model, Usage(input=5)) is None
        assert cost_microusd(model, Usage(input=5)) is None


def test_a_scripted_call_costs_nothing() -> None:
    assert cost_microusd("scripted/demo", Usage(input=5_000_000)) == 0


def test_dated_names_have_the_price_of_their_model() -> None:
    usage = Usage(input=1_000_000)
    for name in ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5@20250929"):
        assert cost(name, usage) == 3
    assert cost("claude-sonnet-5", Usage(cache_read=1_000_000)) == Decimal("0.2")
    assert cost("claude-sonnet-5-5", Usage(cache_read=1_000_000)) == Decimal("0.1")


def test_a_long_prompt_may_raise_the_price_of_input_and_output() -> None:
    short = Usage(input=50_000, cache_read=40_000, cache_write=10_000, output=1_000)
    assert cost_microusd("claude-haiku-5-5", short) == 5_000 + 400 + 1_250 + 500
    longer = Usage(input=50_001, cache_read=40_000, cache_write=10_000, output=1_000)
    assert cost_microusd("claude-haiku-5-5", longer) == 25_001 + 2_000 + 6_250 + 2_500


@pytest.mark.parametrize("model", [*get_args(get_args(ModelParam)[0])])
def test_the_limits_of_every_model_of_the_sdk_are_known(model: str) -> None:
    if model == "claude-mythos-preview":
        pytest.skip("the provider publishes no limits for this preview")
    limits = known_limits(model)
    assert limits.context_window
    assert limits.max_output


def test_a_prompt_may_be_kept_shorter_than_the_window() -> None:
    assert compact_at("claude-haiku-5-5-20261001") == 100_000
    assert compact_at(DEFAULT_MODEL) is None
    assert compact_at("my-own-model") is None


def test_limits_of_an_unknown_model_are_unknown() -> None:
    assert known_limits("my-own-model") == ModelLimits()


def test_the_default_model_has_a_price_and_shows_its_thinking() -> None:
    assert cost(DEFAULT_MODEL, Usage(input=1))
    assert default_thinking(DEFAULT_MODEL) == {"type": "adaptive", "display": "summarized"}
    assert default_thinking("claude-sonnet-4-5-20250929") is None
    assert default_thinking("my-own-model") is None
