"""Prices and limits of models, from `prices.json`.

Prices are USD per million tokens, so tokens times price is micro-USD.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

from agents.providers.base import Block, ModelLimits, Usage

SCRIPTED_PREFIX = "scripted/"
"""Prefix of the model's name in replies of the scripted provider. They cost nothing."""

_DATE = r"(?:[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)?"
_MILLION = Decimal(1_000_000)
MICRO = 1_000_000
"""Costs are kept in millionths of a US dollar."""


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per million tokens."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model's entry in the data file. `rates` is None if its price is unknown.

    A prompt of more than `long_prompt_tokens` is charged `long_prompt_rates`, output included.
    """

    limits: ModelLimits
    adaptive_thinking: bool
    rates: Rates | None
    long_prompt_tokens: int | None
    long_prompt_rates: Rates | None
    compact_at: int | None = None
    """Tokens at which a conversation is compacted, if fewer than the context window allows."""
    reasons: bool = True


def cost(model: str, usage: Usage) -> Decimal | None:
    """Return the USD for one model call, or None if unknown. `model` is the reply's name of it.

    Do not use it for a sum over calls: the price may depend on the length of the prompt.
    """
    if model.startswith(SCRIPTED_PREFIX):
        return Decimal(0)
    entry = _entry(model)
    if entry is None or entry.rates is None:
        return None
    rates = entry.rates
    prompt = usage.input + usage.cache_read + usage.cache_write
    if entry.long_prompt_tokens is not None and prompt > entry.long_prompt_tokens:
        rates = entry.long_prompt_rates or rates
    return (
        usage.input * rates.input
        + usage.output * rates.output
        + usage.cache_read * rates.cache_read
        + usage.cache_write * rates.cache_write
    ) / _MILLION


def cost_microusd(model: str, usage: Usage) -> int | None:
    """Return `cost` as a whole number of millionths of a dollar."""
    dollars = cost(model, usage)
    if dollars is None:
        return None
    return int((dollars * _MILLION).to_integral_value(ROUND_HALF_UP))


def dollars(microusd: int) -> str:
    """Return US dollars as text: two decimals, and more if they are not zero."""
    whole, rest = divmod(microusd, MICRO)
    return f"{whole}.{f'{rest:06d}'[:2]}{f'{rest:06d}'[2:].rstrip('0')}"


def worst_cost_microusd(model: str, prompt_tokens: int, output_tokens: int) -> int | None:
    """Return the maximum cost of a call of this length, rounded up, or None as in `cost`.

    The prompt may be written to the cache, which costs more than uncached input.
    """
    worst = [
        cost(model, Usage(output=output_tokens, **{kind: prompt_tokens}))
        for kind in ("input", "cache_write", "cache_read")
    ]
    known = [dollars for dollars in worst if dollars is not None]
    return int((max(known) * _MILLION).to_integral_value(ROUND_CEILING)) if known else None


def known_limits(model: str) -> ModelLimits:
    """Return the limits in the data file; None in each field for an unknown model."""
    entry = _entry(model)
    return entry.limits if entry else ModelLimits()


def is_known(model: str) -> bool:
    """Return whether the data file has the model. All of its models accept pictures."""
    return _entry(model) is not None


def reasons(model: str) -> bool:
    """Return whether a model thinks before it answers. True if the data file does not know it."""
    entry = _entry(model)
    return entry is None or entry.reasons


def compact_at(model: str) -> int | None:
    """Return the size of the prompt in tokens at which conversations with a model are compacted.

    None if the data file has no such limit.
    """
    entry = _entry(model)
    return entry.compact_at if entry else None


def default_thinking(model: str) -> Block | None:
    """Return the default thinking of an agent's requests; None: omit it.

    Models with adaptive thinking write their comments between tool calls as thinking, and send them
    only on request.
    """
    entry = _entry(model)
    if entry is None or not entry.adaptive_thinking:
        return None
    return {"type": "adaptive", "display": "summarized"}


@cache
def _entry(model: str) -> ModelEntry | None:
    for name, entry in _entries().items():
        if model.startswith(name) and re.fullmatch(_DATE, model.removeprefix(name)):
            return entry
    return None


@cache
def _entries() -> dict[str, ModelEntry]:
    text = Path(__file__).with_name("prices.json").read_text(encoding="utf-8")
    return {name: _read_entry(data) for name, data in json.loads(text)["models"].items()}


def _read_entry(data: Block) -> ModelEntry:
    long_prompt = data.get("long_prompt", {})
    return ModelEntry(
        ModelLimits(data["context_window"], data["max_output"]),
        data["adaptive_thinking"],
        _read_rates(data),
        long_prompt.get("above_tokens"),
        _read_rates(long_prompt),
        data.get("compact_at"),
        data.get("reasons", True),
    )


def _read_rates(data: Block) -> Rates | None:
    if "input" not in data:
        return None
    return Rates(*(Decimal(data[name]) for name in Rates.__dataclass_fields__))
