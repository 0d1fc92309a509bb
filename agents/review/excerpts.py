"""Texts for pages with whole inputs, up to a limit."""

from __future__ import annotations

from collections.abc import Iterable

from agents.review.json_text import text_of
from agents.review.parts import Line
from agents.review.room import Room
from agents.review.spans import lines_of

TOO_LONG_TO_EDIT = "This is too long to be edited here. Use `vel approvals edit`."


def shown_text(value: object) -> str:
    """Return a string, or another value as JSON, in visible form. Long texts keep start and end."""
    return joined(lines_of(text_of(value), Room()))


def joined(lines: Iterable[Line]) -> str:
    return "\n".join("".join(span.text for span in line) for line in lines)


def is_editable(text: str) -> bool:
    """Return whether the text is short enough for an editor on a page."""
    return Room().take(len(text), text.count("\n"))
