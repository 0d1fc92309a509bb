"""Results and inputs as events carry them: whole if they are short, else cut."""

from __future__ import annotations

from itertools import islice
from typing import Any

from agents.events.append import PREVIEW_BYTES, dump

PARTS = 50
"""Fields of an object, and parts of a list, that are shown of a long input."""
KEY_BYTES = 200
MOST_CHARACTERS = 100_000
"""Of a cut input: parts within parts can be many."""


def cut_text(text: str, limit: int) -> str:
    """`text` with at most about `limit` bytes: its head and tail, and a note of what is missing."""
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    head, tail = data[: limit * 2 // 3], data[-(limit // 3) :]
    missing = len(data) - len(head) - len(tail)
    return (
        head.decode("utf-8", "ignore")
        + f"\n[… {missing:,} bytes cut …]\n"
        + tail.decode("utf-8", "ignore")
    )


def preview(text: str) -> str:
    return cut_text(text, PREVIEW_BYTES)


def preview_input(given: Any) -> Any:
    """A tool's input as events show it: whole if it is short, else with its long parts cut.

    What is left out is counted.
    """
    size = len(dump(given).encode())
    if size <= PREVIEW_BYTES:
        return given
    short = _shorten(given, PREVIEW_BYTES // 4)
    if len(dump(short)) <= MOST_CHARACTERS:
        return short
    return {"…": f"an input of {size:,} bytes"}


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, limit)
    if isinstance(value, dict):
        kept = {
            cut_text(key, KEY_BYTES): _shorten(item, limit)
            for key, item in islice(value.items(), PARTS)
        }
        more = len(value) - PARTS
        return kept if more <= 0 else {**kept, "…": f"{more:,} more fields"}
    if isinstance(value, list):
        share = max(40, limit // max(1, len(value)))
        parts = [_shorten(item, share) for item in value[:PARTS]]
        more = len(value) - PARTS
        return parts if more <= 0 else [*parts, f"… {more:,} more"]
    return value
