"""Pieces of Markdown from untrusted texts: a text cannot end its piece, or look like a part of Vel.

The result is for any reader of CommonMark, also one that allows HTML. It loads no pictures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from agents.hidden_text import one_line, visible
from agents.web.markdown import INLINE_BRACKETS, INLINE_CHARACTERS, MAX_NESTING, is_too_large

MAX_TOKENS = 20_000
ATTEMPTS = 4
"""Escaping one element can make another one of the text behind it."""

_BACKTICKS = re.compile("`+")
_SIGNIFICANT = re.compile(r"([\\`*_\[\]<>#|~&$!])")
_OPENS = re.compile(r"(?P<before>\\*)(?P<opens><(?=[A-Za-z/!?])|!(?=\[)|\[(?=\^[^\]]+\]:))")
"""The start of HTML, of an address in angle brackets, of a picture or of a footnote."""
_FOOTNOTE = re.compile(r"^\[(?=\^[^\]\n]+\]:)", re.MULTILINE)
"""Some readers move the text behind it to the end of the document."""


class _TooComplex(Exception):
    """The parser would need too long for the text, or would leave out a part of it."""


def plain(text: str) -> str:
    """Return `text` with visible code points, in which only a line feed ends a line."""
    return visible(text.replace("\r\n", "\n"))


def inline(text: str, width: int = 200) -> str:
    """Return the start of `text` as one line without any markup, for example a name."""
    return _SIGNIFICANT.sub(r"\\\1", one_line(text, width))


def in_html(text: str, width: int = 200) -> str:
    """Return the start of `text` as one line for HTML."""
    return escape(one_line(text, width))


def code(text: str, width: int = 200) -> str:
    """Return the start of `text` as one line of code."""
    line = one_line(text, width)
    fence = "`" * (_longest(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{pad}{line or ' '}{pad}{fence}"


def fenced(text: str, language: str = "text") -> str:
    """Return `text` as a block of code. Its fence is longer than each row of backticks in it."""
    text = plain(text)
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def quoted(text: str) -> str:
    """Return `text` as a quote, with its Markdown but without HTML, pictures and definitions.

    A text for which this is not certain becomes a block of code.
    """
    text = plain(text).strip("\n")
    try:
        lines = _harmless(text)
        quote = "".join(f"> {line}\n" if line else ">\n" for line in lines)
        if not _is_one_quote(quote):
            raise _TooComplex
    except _TooComplex:
        return fenced(text)
    return quote


def _longest(text: str) -> int:
    return max((len(row) for row in _BACKTICKS.findall(text)), default=0)


def _harmless(text: str) -> list[str]:
    """Return the lines with escapes before what a reader would not show as text.

    Only in paragraphs and blocks that have such elements: others stay as they are.
    """
    for _ in range(ATTEMPTS):
        lines = text.split("\n")
        found = {
            (kind, at)
            for kind, (first, end) in _dangerous(_parsed(text))
            for at in range(first, min(end, len(lines)))
        }
        if not found:
            return lines
        for kind, at in found:
            line = _OPENS.sub(_escaped, lines[at])
            lines[at] = line.replace("[", r"\[", 1) if kind == "definition" else line
        text = "\n".join(lines)
    raise _TooComplex


def _escaped(found: re.Match[str]) -> str:
    is_escaped = len(found["before"]) % 2 == 1
    return found[0] if is_escaped else f"{found['before']}\\{found['opens']}"


def _is_one_quote(quote: str) -> bool:
    tokens = _parsed(quote)
    outer = [token.type for token in tokens if token.level == 0]
    return outer == ["blockquote_open", "blockquote_close"] and not list(_dangerous(tokens))


def _dangerous(tokens: list[Token]) -> Iterator[tuple[str, list[int]]]:
    """Yield the types and the lines of blocks with HTML, pictures or definitions."""
    lines: list[int] = []
    for token in tokens:
        lines = token.map or lines  # a cell of a table is in the lines of its row
        kinds = {child.type for child in token.children or ()}
        if (
            token.type in ("html_block", "definition")
            or kinds & {"html_inline", "image"}
            or (token.type == "inline" and _FOOTNOTE.search(token.content))
        ):
            yield token.type, lines


def _parsed(text: str) -> list[Token]:
    if is_too_large(text):
        raise _TooComplex
    tokens = _PARSER.parse(text)
    count = len(tokens) + sum(len(token.children or ()) for token in tokens)
    if count > MAX_TOKENS or any(token.level >= MAX_NESTING - 3 for token in tokens):
        raise _TooComplex
    return tokens


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            content = token.content
            if len(content) > INLINE_CHARACTERS or content.count("[") > INLINE_BRACKETS:
                raise _TooComplex
            token.children = []
            state.md.inline.parse(content, state.md, state.env, token.children)


def _parser() -> MarkdownIt:
    options = {"html": True, "maxNesting": MAX_NESTING, "inline_definitions": True}
    parser = MarkdownIt("commonmark", options)
    parser.enable(["table", "strikethrough"])
    parser.core.ruler.at("inline", _inline)
    # Each address counts: other readers accept more of them.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


_PARSER = _parser()
