"""Markdown of an agent as a tree of a few kinds of elements, without HTML.

The server builds the tree, and `markdown.js` creates its elements one by one from the same list of
allowed tags. No step produces HTML, so no sanitizing is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias
from urllib.parse import urlsplit

from django.utils.translation import gettext
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from agents.hidden_text import visible

Tree: TypeAlias = "list[str | Tree | dict[str, str | int]]"
"""`[tag, attributes, child, …]`; a child is a tree or text."""
LinkTo = Callable[[str], str | None]
"""Maps the name of a file in a text to a URL. None if the run has no such file."""

MARKDOWN_BYTES = 64_000
"""Longer texts are shown as plain text."""
INLINE_CHARACTERS = 8_000
"""Longer paragraphs and cells have no emphasis or links, because some rules take quadratic time."""
INLINE_BRACKETS = 500
"""Limit of `[` in a paragraph: for each the parser may search the rest of the text for a link."""
MAX_LINES = 2_000
"""Texts with more lines, or tables with more columns, are shown as plain text."""
MAX_COLUMNS = 50
MAX_TOKENS = 20_000
"""Texts that produce more elements are shown as plain text."""
MAX_NESTING = 40
LINE_MARKERS = 16
"""Limit of lists and quotes that start on one line: the parser tries all of them on later lines."""
MARKERS = 6_000
"""Limit for all lines together. The scan runs before parsing: each marker opens elements."""
SCHEMES = frozenset({"http", "https", "mailto"})

TAGS = frozenset(
    {"p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre"}
    | {"code", "em", "strong", "s", "a", "img", "table", "thead", "tbody", "tr", "th", "td"}
)
_MARKER = re.compile(r"[ \t]*(?:>|[-*+](?=[ \t]|$)|[0-9]{1,9}[.)](?=[ \t]|$))")
_LEADING = re.compile(f"(?:{_MARKER.pattern})+")
_RULE = re.compile(r"[ \t]*([-*_])(?:[ \t]*\1)*[ \t]*")
_HEADINGS = {"h1": "h2", "h2": "h3", "h3": "h4", "h4": "h5", "h5": "h6"}
_ALIGNED = {f"text-align:{side}": side for side in ("left", "center", "right")}


def markdown_tree(text: str, link_to: LinkTo, picture_of: LinkTo) -> list[str | Tree] | None:
    """Return the blocks of `text`, or None if it must be shown as plain text.

    `link_to` returns the URL of a file that a link names, and `picture_of` that of a picture. None
    means that the text is too large, or nested so deeply that the parser would omit a part.
    """
    if is_too_large(text):
        return None
    # The parser would replace it with U+FFFD.
    tokens = _PARSER.parse(text.replace("\0", visible("\0")))
    count = len(tokens) + sum(len(token.children or ()) for token in tokens)
    if count > MAX_TOKENS or any(token.level >= MAX_NESTING - 3 for token in tokens):
        return None
    return _Builder(link_to, picture_of).blocks(tokens)


def is_too_large(text: str) -> bool:
    """Return whether the parser could need too long for the text."""
    if len(text.encode("utf-8", "surrogatepass")) > MARKDOWN_BYTES:
        return True
    lines = text.split("\n", MAX_LINES)
    if len(lines) > MAX_LINES or max(line.count("|") for line in lines) > MAX_COLUMNS:
        return True
    markers = [_markers(line) for line in lines]
    return max(markers) > LINE_MARKERS or sum(markers) > MARKERS


def _markers(line: str) -> int:
    """Return how many lists and quotes the line can start. A rule such as `- - -` starts none."""
    found = _LEADING.match(line)
    if found is None or _RULE.fullmatch(line):
        return 0
    return len(_MARKER.findall(found[0]))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    # Link definitions are not displayed, so an agent could hide text in them.
    parser.disable(["reference", "html_block", "html_inline"])
    parser.core.ruler.at("inline", _inline)
    # `_href` decides which addresses become links. Here all are valid, so that no text is lost.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type != "inline":
            continue
        text = token.content
        if len(text) > INLINE_CHARACTERS or text.count("[") > INLINE_BRACKETS:
            token.children = [Token("text", "", 0, content=token.content)]
        else:
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


class _Builder:
    def __init__(self, link_to: LinkTo, picture_of: LinkTo) -> None:
        self._link_to = link_to
        self._picture_of = picture_of
        self._nowhere: list[str] = []

    def blocks(self, tokens: list[Token]) -> list[str | Tree]:
        root: Tree = ["", {}]
        self._fill(root, iter(tokens))
        return root[2:]  # type: ignore[return-value]  # only the second is a dict

    def _fill(self, root: Tree, tokens: Iterator[Token]) -> None:
        """Add the elements of `tokens`. Uses a stack: the agent controls the nesting depth."""
        stack = [root]
        for token in tokens:
            if token.type == "inline":
                self._fill(stack[-1], iter(token.children or ()))
            elif token.hidden or (token.type == "text" and not token.content):
                continue  # paragraphs of a tight list, and empty text after emphasis
            elif token.nesting == 1:
                node = self._opened(token)
                stack[-1].append(node)
                stack.append(node)
            elif token.nesting == -1:
                closed = stack.pop()
                if closed[0] == "span":  # not a link: its address follows its text
                    closed.append(f" ({self._nowhere.pop()})")
                    stack[-1][-1:] = closed[2:]
            else:
                stack[-1].append(self._single(token))

    def _opened(self, token: Token) -> Tree:
        tag = _HEADINGS.get(token.tag, token.tag)
        if tag == "a":
            to = str(token.attrGet("href") or "")
            href = _href(to, self._link_to)
            if href:
                return ["a", {"href": href}]
            self._nowhere.append(to)
            return ["span", {}]
        if tag not in TAGS:
            raise ValueError(f"Markdown gave an element that is not foreseen: {tag!r}.")
        attributes: dict[str, str | int] = {}
        if tag == "ol" and isinstance(start := token.attrGet("start"), int):
            attributes["start"] = start
        if tag in ("th", "td") and (side := _ALIGNED.get(str(token.attrGet("style")))):
            attributes["align"] = side
        return [tag, attributes]

    def _single(self, token: Token) -> str | Tree:
        match token.type:
            case "text" | "text_special":
                return token.content
            case "softbreak" | "hardbreak":
                return ["br", {}]
            case "hr":
                return ["hr", {}]
            case "code_inline":
                return ["code", {}, token.content]
            case "code_block" | "fence":
                info = token.info.strip()
                return ["pre", {"info": info} if info else {}, ["code", {}, token.content]]
            case "image":
                return self._image(token)
        raise ValueError(f"Markdown gave a token that is not foreseen: {token.type!r}.")

    def _image(self, token: Token) -> str | Tree:
        source, text = str(token.attrGet("src") or ""), token.content
        picture = self._picture_of(source)
        if picture:
            return ["img", {"src": picture, "alt": text}]
        href = _href(source, self._link_to)
        if href:
            name = gettext("Picture: %(name)s") % {"name": text} if text else gettext("Picture")
            return ["a", {"href": href}, name]
        values = {"name": text, "address": source}
        return gettext("Picture: %(name)s (%(address)s)") % values


def _href(to: str, link_to: LinkTo) -> str | None:
    try:
        scheme = urlsplit(to).scheme
    except ValueError:
        return None
    return to if scheme in SCHEMES else link_to(to)


_PARSER = _parser()
