"""A file of a skill on a page: unchanged, limited in size, and never slow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.hidden_text import visible
from skills_app.admin import code as skill_code
from skills_app.admin.code import language_of, shown_code


def text_of(shown: skill_code.ShownCode) -> str:
    return "\n".join("".join(piece.text for piece in line) for line in shown.lines)


@pytest.mark.parametrize("path", ["a.py", "a.sh", "a.md", "a.json", "a.html", "a.yaml", "a.js"])
def test_nothing_is_added_or_lost(path: str) -> None:
    text = "#!x\r\n\n  def f(a):\t# \u202eno\u200b\n<script>'\n---\n"
    text += '{"a": [1, \x00]}\n```py\nx\n```\n\n'
    shown = shown_code(path, text)
    assert text_of(shown) == visible(text)
    assert shown.has_hidden
    assert shown.language == language_of(path, "")
    assert {word for line in shown.lines for piece in line for word in piece.css.split()} > {
        "mark-hidden"
    }


@given(st.text(max_size=300))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    assert text_of(shown_code("a.unknown", text)) == visible(text)


def test_classes_come_from_a_list_and_never_from_the_file() -> None:
    shown = shown_code("a.py", "import os\nclass X:\n    '''\"><script>'''\n")
    words = {piece.css for line in shown.lines for piece in line if piece.css}
    assert words
    assert all(word.startswith("hl-") and word[3:].isalnum() for word in words)


def test_a_text_that_hangs_a_lexer_is_shown_without_colours() -> None:
    text = ("`" * 4_900 + "\n") * 40  # quadratic time in Pygments' lexer of YAML
    shown = shown_code("a.yaml", text, seconds=0.7)
    assert (shown.language, text_of(shown)) == ("", text)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * (skill_code.MAX_CHARACTERS + 7), 7),
        ("\n" * (skill_code.MAX_LINES + 9), 10),
        ("x", 0),
    ],
)
def test_omitted_characters_are_counted(text: str, cut: int) -> None:
    assert shown_code("a.txt", text).cut == cut


def test_generated_code_is_not_highlighted() -> None:
    assert shown_code("a.js", f"var x = '{'a' * 6_000}'").language == ""
    assert shown_code("a.js", f"var x = '{'a' * 100}'\n" * 2_000).language == ""
    assert shown_code("a.js", "var x = 1").language == "javascript"


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("run", "#!/usr/bin/env python3\n", "python"),
        ("run", "#!/bin/bash -e\n", "bash"),
        ("run", "#!/opt/evil\n", ""),
        ("RUN.PY", "", "python"),
        ("Makefile", "all:\n", ""),
    ],
)
def test_the_name_or_the_first_line_determines_the_language(
    path: str, text: str, language: str
) -> None:
    assert language_of(path, text) == language
