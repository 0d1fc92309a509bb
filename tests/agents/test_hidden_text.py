"""Invisible characters are shown as code points, in Python and in the browser."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
from agents.hidden_text import (
    HIDDEN_RANGES,
    escaped_json,
    escaped_text,
    unescaped_text,
    visible,
)

SCRIPT = Path(agents.__file__).parent / "static" / "agents" / "web" / "text.js"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ümläut, 日本, \t\n", "plain, ümläut, 日本, \t\n"),
        ("\x1b[31m", "⟨U+001B⟩[31m"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\r\n", "a⟨U+000D⟩\n"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\ud800", "⟨U+D800⟩"),
    ],
)
def test_hidden_characters_become_code_points(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_every_control_and_direction_mark_is_covered() -> None:
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cs") or (
            unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF")
            or unicodedata.bidirectional(character) in ("LRI", "RLI", "FSI", "PDI")
        ):
            assert visible(character) != character or character in "\t\n", hex(code)


def test_the_browser_hides_the_same_characters() -> None:
    listed = re.search(r"HIDDEN_RANGES = \[(.*?)\];", SCRIPT.read_text(), re.DOTALL)
    assert listed is not None
    pairs = re.findall(r"\[(0x[0-9a-f]+), (0x[0-9a-f]+)\]", listed[1])
    assert tuple((int(first, 16), int(last, 16)) for first, last in pairs) == HIDDEN_RANGES


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_json_for_editing_means_the_same_and_hides_nothing(value: object) -> None:
    text = escaped_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value
    assert visible(text) == text


@given(
    st.text(alphabet=st.sampled_from(["\\", "u", "{", "}", "5", "c", "\u202e", "\r", "\n", "a"]))
)
def test_text_that_is_edited_comes_back_as_it_was(text: str) -> None:
    typed = escaped_text(text)
    assert visible(typed) == typed
    assert unescaped_text(typed) == text


def test_an_escape_of_no_character_stays_as_it_is() -> None:
    assert unescaped_text("\\u{110000} \\u{} \\u{41}") == "\\u{110000} \\u{} A"
