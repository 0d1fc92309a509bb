"""JSON for a reading, in bounded time: indenting a small but deep value can make it huge."""

from __future__ import annotations

import json

from agents.reading.room import CHARACTERS


def text_of(value: object, limit: int = CHARACTERS) -> str:
    """A string as it is, anything else as JSON; numbers with all their digits.

    The JSON is indented if that takes at most `limit` characters, else it is one line.
    """
    if isinstance(value, str):
        return value
    indented = _indented(value, limit)
    return compact(value) if indented is None else indented


def compact(value: object) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _indented(value: object, limit: int) -> str | None:
    """None if it is longer than `limit`, or deeper than Python code can go."""
    parts: list[str] = []
    left = limit
    try:
        for part in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
            left -= len(part)
            if left < 0:
                return None
            parts.append(part)
    except RecursionError:
        return None
    return "".join(parts)
