"""Texts for pages that show a whole input, as far as there is room for it."""

from __future__ import annotations

from collections.abc import Iterable

from agents.review.json_text import text_of
from agents.review.parts import Line
from agents.review.room import Room
from agents.review.spans import lines_of

TOO_LONG_TO_EDIT = "This is too long to be edited here. Use `vel approvals edit`."


def shown_text(value: object) -> str:
    """A string, or anything else as JSON: visible, with its beginning and its end if it is long."""
    return joined(lines_of(text_of(value), Room()))


def joined(lines: Iterable[Line]) -> str:
    return "\n".join("".join(span.text for span in line) for line in lines)


def is_editable(text: str) -> bool:
    """Whether a page has room for an editor of all of it."""
    return Room().take(len(text), text.count("\n"))
