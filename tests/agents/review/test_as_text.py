"""For terminals: colour does not change the words."""

from __future__ import annotations

import re

from agents.review import as_text, call_review

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def test_color_adds_only_styles() -> None:
    whole = {"path": "a", "old_text": "two", "new_text": "2\u200b\x1b[2J", "extra": "\x9b"}
    review = call_review("edit_file", whole, "one\ntwo\n")
    colored = as_text(review, color=True)
    assert STYLE.sub("", colored) == as_text(review)
    assert "\x1b[32m" in colored
    assert "⟨U+001B⟩[2J" in STYLE.sub("", colored)
    assert "\x1b[2J" not in colored
    assert "\x9b" not in colored


def test_without_color_trailing_white_space_is_marked() -> None:
    review = call_review("write_file", {"path": "a", "content": "one \t\n"}, "one\n")
    assert "+ one \t ⟨white space at the end⟩\n" in as_text(review)
    assert as_text(review).count("white space") == 1


def test_line_numbers_are_in_columns() -> None:
    review = call_review("write_file", {"path": "a", "content": "1\n2\nx\n"}, "1\n2\n3\n")
    assert as_text(review).splitlines()[3:] == ["1 1   1", "2 2   2", "3   - 3", "  3 + x"]
