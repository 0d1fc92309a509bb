"""JSON for reviews, in bounded time: indentation of a small but deep value can be huge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice

from django.utils.translation import gettext_lazy as _

from agents.review.parts import Line
from agents.review.room import CHARACTERS, Room
from agents.review.spans import lines_of

_END = object()


def text_of(value: object, limit: int = CHARACTERS) -> str:
    """Return a string as it is, another value as JSON with all digits of numbers.

    The JSON is indented if that takes at most `limit` characters, otherwise it is one line.
    """
    if isinstance(value, str):
        return value
    indented = _indented(value, limit)
    return compact(value) if indented is None else indented


def compact(value: object) -> str:
    """Return JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _indented(value: object, limit: int) -> str | None:
    """Return indented JSON. None if it exceeds `limit`, or the recursion limit."""
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


def size_of(value: object, limit: int) -> int:
    """Return the approximate number of characters of the JSON. Stops counting after `limit`."""
    size = 0
    todo: list[Iterator[object]] = [iter((value,))]
    while todo and size <= limit:
        item = next(todo[-1], _END)
        match item:
            case _ if item is _END:
                todo.pop()
            case str():
                size += len(item) + 4
            case dict():
                size += sum(len(name) + 4 for name in islice(item, limit)) + 2
                todo.append(iter(item.values()))
            case list() | tuple():
                size += 2
                todo.append(iter(item))
            case int():
                size += item.bit_length() // 3 + 3
            case _:
                size += 6
    return size


def one_line_of(value: object, limit: int) -> str:
    """Return the first `limit` characters of a value as JSON on one line, for lists.

    A longer text ends with an ellipsis after them.
    """
    parts: list[str] = []
    left = limit
    for part in _pieces(_shortened(value, limit)):
        parts.append(part[: left + 1])
        left -= len(part)
        if left < 0:
            break
    text = "".join(parts)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _shortened(value: object, limit: int) -> object:
    """Return a shorter value whose JSON starts with the same `limit` characters.

    A text is cut. A dictionary keeps its first entries, with texts cut. Deeper values stay.
    """
    if isinstance(value, str):
        return value[: limit + 1]
    if isinstance(value, dict):
        shown = islice(value.items(), limit)
        return {
            name[: limit + 1]: item[: limit + 1] if isinstance(item, str) else item
            for name, item in shown
        }
    return value


def _pieces(value: object) -> Iterator[str]:
    try:
        yield from json.JSONEncoder(ensure_ascii=False).iterencode(value)
    except RecursionError:
        yield "…"


TOO_LONG_TO_EDIT = _("This is too long to be edited here. Use `vel approvals edit`.")


def shown_text(value: object) -> str:
    """Return a string, or another value as JSON, in visible form. Long texts keep start and end."""
    return joined(lines_of(text_of(value), Room()))


def joined(lines: Iterable[Line]) -> str:
    return "\n".join("".join(span.text for span in line) for line in lines)


def is_editable(text: str) -> bool:
    """Return whether the text is short enough for an editor on a page."""
    return Room().take(len(text), text.count("\n"))
