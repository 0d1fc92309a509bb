"""Markdown of an agent's text: a tree of known elements, complete, in limited time."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.web.markdown import (
    _PARSER,
    INLINE_BRACKETS,
    INLINE_CHARACTERS,
    LINE_MARKERS,
    MARKDOWN_BYTES,
    TAGS,
    markdown_tree,
)


def tree(text: str) -> Any:
    return markdown_tree(text, lambda named: None, lambda named: None)


def text_of(node: Any) -> str:
    if isinstance(node, str):
        return node
    return "".join(text_of(child) for child in node[2:])


def elements(node: Any) -> list[list[Any]]:
    if isinstance(node, str | dict):
        return []
    return [node, *(found for child in node[2:] for found in elements(child))]


def all_elements(trees: Any) -> list[list[Any]]:
    return [found for node in trees for found in elements(node)]


def test_markdown_of_agents_is_rendered() -> None:
    assert tree("# Title\n\nSome **bold** `code`\nand ~~gone~~") == [
        ["h2", {}, "Title"],
        [
            *("p", {}, "Some ", ["strong", {}, "bold"], " ", ["code", {}, "code"], ["br", {}]),
            *("and ", ["s", {}, "gone"]),
        ],
    ]
    assert tree("3. a\n4. b") == [["ol", {"start": 3}, ["li", {}, "a"], ["li", {}, "b"]]]
    assert tree("```py\nx = 1\n```") == [["pre", {"info": "py"}, ["code", {}, "x = 1\n"]]]
    cell = tree("|a|\n|-:|\n|1|")[0][3][2][2]
    assert cell == ["td", {"align": "right"}, "1"]


@pytest.mark.parametrize(
    "markup",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<!-- hidden -->",
        "<style>*{display:none}</style>",
        "<div class=note id=main data-run=x>x</div>",
        "[//]: # (hidden)",
        "[a]: https://example.org 'hidden'",
        "<https://example.org/<b>>",
    ],
)
def test_markup_comments_and_definitions_are_text(markup: str) -> None:
    shown = tree(f"before\n\n{markup}\n\nafter")
    assert "".join(text_of(node) for node in shown[1:-1]) == markup.replace("\n", "")
    assert {element[0] for element in all_elements(shown)} <= {"p", "a"}


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example/x",
        "blob:https://a/b",
        "x://y",
    ],
)
def test_other_addresses_are_shown_and_no_links(address: str) -> None:
    shown = tree(f"[click](<{address}>) and ![see](<{address}>)")
    assert not [element for element in all_elements(shown) if element[0] in ("a", "img")]
    said = "".join(map(text_of, shown))
    assert said.startswith("click (")
    assert said.count("see") == 1


def test_files_of_the_run_are_links_and_pictures() -> None:
    def link(named: str) -> str | None:
        return f"/files/{named}" if named.endswith(".md") else None

    def picture(named: str) -> str | None:
        return f"/pictures/{named}" if named == "c.png" else None

    shown = markdown_tree("[r](r.md) ![c](c.png) ![x](https://example.org/x.png)", link, picture)
    assert shown == [
        [
            "p",
            {},
            ["a", {"href": "/files/r.md"}, "r"],
            " ",
            ["img", {"src": "/pictures/c.png", "alt": "c"}],
            " ",
            ["a", {"href": "https://example.org/x.png"}, "Picture: x"],
        ]
    ]


def test_text_that_a_parser_would_drop_stays() -> None:
    assert tree("> " * 60 + "the end") is None
    assert tree("- " * 60 + "the end") is None
    assert tree("x" * (MARKDOWN_BYTES + 1)) is None
    assert tree("-\n" * 30_000) is None
    assert tree("|".join("a" * 99) + "\n" + "|".join("-" * 99)) is None
    assert tree("a|b\n-|-\n" + "1|2\n" * 1_900) is not None
    assert "the end" in text_of(tree("> " * LINE_MARKERS + "the end")[0])


DEEP = ("> " * 38 + "x\n") + "y\n" * 1_900, ("- " * 10 + "x\n") * 1_990, ("> - " * 18 + "x\n") * 800
DEEP += (("> " * 35 + "x\n" + "y\n" * 20) * 60, ("1. - > " * 5 + "x\n") * 500)


@pytest.mark.parametrize("text", DEEP)
def test_deeply_nested_text_is_not_parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these took a third of a second."""
    monkeypatch.setattr(_PARSER, "parse", lambda text: pytest.fail("parsed"))
    assert tree(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "- - - " * 20,
        "* " * 100,
        "_" * 100,
        "-" * 100,
        "**bold** " * 30,
        "- a\n" * 1_900,
        "".join("  " * depth + "- a\n" for depth in range(10)),
        "> " * LINE_MARKERS + "a",
        "1.0 2.0 3.0 " * 20,
        "+-+-+-" * 20,
        "->" * 40 + "a",
    ],
)
def test_text_without_deep_nesting_is_parsed(text: str) -> None:
    assert tree(text) is not None


def test_a_paragraph_of_brackets_is_text() -> None:
    linked = "[a](http://b) "
    assert len(all_elements(tree(linked * INLINE_BRACKETS))) == 1 + INLINE_BRACKETS
    text = linked * (INLINE_BRACKETS + 1)
    assert tree(text) == [["p", {}, text.strip()]]


def test_a_character_that_a_parser_replaces_is_reported() -> None:
    assert tree("a\0b") == [["p", {}, "a⟨U+0000⟩b"]]


FILLED = "[", "![", "](", "[a](", "*", "a**b", "*a _", "`a", "<", "&#", ">", "- ", "1. a\n", "|"
FILLED += ("a|b\n", "\\", "~~a", "```\n", "a\n", "\n", " ", "[a](b '", "\t- a\n", "> - ", "<a@")


@pytest.mark.parametrize("piece", FILLED)
def test_no_text_takes_long(piece: str) -> None:
    text = (piece * MARKDOWN_BYTES)[:MARKDOWN_BYTES]
    table = "|".join("a" * 50) + "\n" + "|".join("-" * 50) + "\n"
    begun = time.process_time()
    for each in (text, table + text[: MARKDOWN_BYTES - 1000], text[:INLINE_CHARACTERS]):
        tree(each)
    assert time.process_time() - begun < 3


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.sampled_from("abc \n\t*_`~#>-+1.|[]()<>!\\&;:/\"'=\0\u202e\ud800é"), max_size=200)
)
def test_only_known_elements_and_their_attributes(text: str) -> None:
    shown = tree(text)
    if shown is None:
        return
    for tag, attributes, *_ in all_elements(shown):
        assert tag in TAGS
        assert set(attributes) <= {"href", "src", "alt", "start", "align", "info"}
        href = attributes.get("href", "https:")
        assert href.partition(":")[0] in ("http", "https", "mailto")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "alpha",
                "beta",
                "*",
                "_",
                "`",
                "#",
                "> ",
                "- ",
                "1. ",
                "[",
                "]",
                "<",
                "|",
                "\n",
                "\n\n",
                " ",
                "    ",
            ]
        ),
        max_size=40,
    )
)
def test_no_word_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    shown = tree(text) or [text]
    said = "".join(map(text_of, shown)) + str([element[1] for element in all_elements(shown)])
    for word in ("alpha", "beta"):
        assert said.count(word) == text.count(word)
