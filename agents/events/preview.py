"""Results and inputs in events: whole if they are short, else cut."""

from __future__ import annotations

from itertools import islice
from typing import Any

from agents.events.append import PREVIEW_BYTES, dump

PARTS = 50
"""Fields of an object, and parts of a list, that are kept of a long input."""
KEY_BYTES = 200
MOST_CHARACTERS = 100_000
"""Limit of a cut input, since nested parts can be many."""


def cut_text(text: str, limit: int) -> str:
    """Return `text` cut to about `limit` bytes: its head and tail, and a note about the cut."""
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
    """Return a tool's input for events: whole if it is short, else with its long parts cut.

    A cut input contains the number of cut bytes, fields and parts.
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
