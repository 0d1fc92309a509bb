"""Results and inputs as events carry them: whole if they are short, else cut."""

from __future__ import annotations

from typing import Any

from agents.events.append import PREVIEW_BYTES, dump


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
    """A tool's input as events show it: whole if it is short, else with its long strings cut."""
    if len(dump(given).encode()) <= PREVIEW_BYTES:
        return given
    return _shorten(given, PREVIEW_BYTES // 4)


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, limit)
    if isinstance(value, dict):
        return {key: _shorten(item, limit) for key, item in list(value.items())[:50]}
    if isinstance(value, list):
        return [_shorten(item, max(40, limit // max(1, len(value)))) for item in value[:50]]
    return value
