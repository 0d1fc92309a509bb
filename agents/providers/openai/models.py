"""Read `GET /models` of servers with OpenAI's protocols.

OpenAI itself reports no limits there; vLLM, llama.cpp and OpenRouter have additional fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.providers.base import ModelLimits


def entries(listed: object, model: str) -> list[Mapping[str, Any]]:
    """Return the entries for `model`. A single entry matches any name."""
    if not isinstance(listed, Mapping):
        return []
    found = [*_rows(listed.get("data")), *_rows(listed.get("models"))]
    named = [row for row in found if model in (row.get("id"), row.get("name"), row.get("model"))]
    rows = list(_rows(listed.get("data")))
    return named or (found if len(rows) == 1 else [])


def limits_of(rows: list[Mapping[str, Any]]) -> ModelLimits:
    """Return the context window and the longest reply, if the server reports them."""
    return ModelLimits(
        _first(_sizes(rows, "max_model_len", "context_length", "n_ctx")),
        _first(_sizes(rows, "max_completion_tokens")),
    )


def takes_images(rows: list[Mapping[str, Any]]) -> bool:
    """Return whether the server reports that the model accepts pictures."""
    for row in rows:
        told = [row.get("capabilities"), _inner(row, "architecture").get("input_modalities")]
        words = {word for each in told if isinstance(each, list) for word in map(str, each)}
        if words & {"multimodal", "vision", "image"}:
            return True
    return False


def _rows(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (row for row in value if isinstance(row, Mapping))


def _inner(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = row.get(name)
    return found if isinstance(found, Mapping) else {}


def _sizes(rows: list[Mapping[str, Any]], *names: str) -> Iterator[int]:
    for row in rows:
        for place in (row, _inner(row, "meta"), _inner(row, "top_provider")):
            for name in names:
                found = place.get(name)
                if type(found) is int and found > 0:
                    yield found


def _first(found: Iterator[int]) -> int | None:
    return next(found, None)
