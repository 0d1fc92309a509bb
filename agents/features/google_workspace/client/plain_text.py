"""Text of mails and invitations for a model: only text that is visible to a person.

Any sender of a mail can write to the agent. So invisible text is removed and counted: invisible
characters, and hidden elements of HTML.

HTML is split into tags and text in linear time for any input. Python's own parser takes quadratic
time for tags and comments that never end, and any sender of a mail can exploit this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape

from agents.hidden_text import HIDDEN_RANGES

# Possessive quantifiers over disjoint classes, so that no pattern backtracks.
_NAME = re.compile(r"/?[a-zA-Z][^\s/>]*+")
_BLANK = re.compile(r"[\s/]*+")
_ATTRIBUTE = re.compile(r"([^\s/>=][^\s/>=]*+)\s*+(=?)\s*+")
_BARE = re.compile(r"[^\s>]*+")
_RAW = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"})
"""Elements with raw text: their content has no tags."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag. `name` is in lower case; end tags have a slash. The first of two attributes counts."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)


def pieces(markup: str) -> Iterator[Tag | str]:
    """Yield tags and the text between them. Markup without an end takes the rest of the text."""
    lower = markup.lower() if len(markup.lower()) == len(markup) else markup
    at = 0
    while at < len(markup):
        found = markup.find("<", at)
        if found < 0:
            yield unescaped(markup[at:])
            return
        if found > at:
            yield unescaped(markup[at:found])
        name = _NAME.match(markup, found + 1)
        if name is None:
            at = _after_other(markup, found)
            if at == found:
                yield "<"
                at += 1
            continue
        tag, at = _tag(markup, name[0].lower(), name.end())
        if tag is None:
            return
        yield tag
        if tag.name in _RAW:
            end = lower.find(f"</{tag.name}", at)
            if end < 0:
                return
            yield markup[at:end]
            at = end


def unescaped(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:
        return text  # a number with thousands of digits


def _after_other(markup: str, at: int) -> int:
    """Return the place after a comment or a declaration at `at`, or `at` if there is none."""
    if markup.startswith("<!--", at):
        return _after(markup, "-->", at + 2)
    if markup.startswith(("<!", "<?", "</"), at):
        return _after(markup, ">", at)
    return at


def _after(markup: str, end: str, at: int) -> int:
    found = markup.find(end, at)
    return len(markup) if found < 0 else found + len(end)


def _tag(markup: str, name: str, at: int) -> tuple[Tag | None, int]:
    """Return the tag whose name ends at `at`, and its end. The tag is None if it never ends."""
    attributes: dict[str, str] = {}
    while True:
        blank = _BLANK.match(markup, at)
        at = blank.end() if blank else at
        if at >= len(markup):
            return None, at
        if markup[at] == ">":
            return Tag(name, attributes), at + 1
        found = _ATTRIBUTE.match(markup, at)
        if found is None:  # a stray equals sign
            at += 1
            continue
        at, value = found.end(), ""
        if found[2]:
            if at < len(markup) and markup[at] in "\"'":
                end = markup.find(markup[at], at + 1)
                if end < 0:
                    return None, at
                value, at = markup[at + 1 : end], end + 1
            else:
                bare = _BARE.match(markup, at)
                assert bare is not None
                value, at = bare[0], bare.end()
        attributes.setdefault(found[1].lower(), unescaped(value))


MAX_HTML = 2_000_000
"""Characters of HTML that are read; the text says if more was left out."""
_HIDDEN = re.compile(
    "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in HIDDEN_RANGES) + "]"
)
_UNSEEN = re.compile(
    r"display:none|visibility:hidden|font-size:0(?![.1-9])|opacity:0(?![.1-9])|mso-hide:all"
    r"|max-height:0(?![.1-9])|color:transparent"
)
_SKIPPED = frozenset({"script", "style", "head", "title", "template", "noscript", "object", "svg"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_BLOCKS = frozenset({"p", "div", "br", "tr", "table", "ul", "ol", "li", "blockquote", "pre", "hr"})
_BLOCKS |= {"h1", "h2", "h3", "h4", "h5", "h6", "section", "article"}


@dataclass(frozen=True, slots=True)
class PlainText:
    text: str
    left_out: int
    """The number of characters that a reader cannot see."""


def plain(text: str) -> PlainText:
    """Return `text` without invisible characters; line ends are line feeds."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n")
    shown, count = _HIDDEN.subn("", whole)
    return PlainText(shown, count)


def from_html(markup: str) -> PlainText:
    """Return the text of HTML, with the addresses of its links."""
    reader = _Reader()
    for piece in pieces(markup[:MAX_HTML]):
        reader.read(piece)
    found = plain("".join(reader.parts))
    lines = [" ".join(line.split()) for line in found.text.split("\n")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    if len(markup) > MAX_HTML:
        text += "\n[the rest of this long text was left out]"
    return PlainText(text, found.left_out + reader.left_out)


class _Reader:
    """A reader of pieces that collects visible text and counts invisible text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.left_out = 0
        self._open: list[tuple[str, bool]] = []
        """Names of the open elements, and whether their content is invisible."""
        self._names: Counter[str] = Counter()
        """The number of open elements of each name, so that a stray end tag is cheap."""
        self._links: list[str] = []

    def read(self, piece: Tag | str) -> None:
        if isinstance(piece, str):
            self._text(piece)
        elif piece.name.startswith("/"):
            self._end(piece.name[1:])
        else:
            self._start(piece.name, piece.attributes)

    @property
    def _unseen(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _BLOCKS:
            self.parts.append("\n")
        hidden = self._unseen or name in _SKIPPED or _is_hidden(attributes)
        if name in _VOID:
            if name == "img" and attributes.get("alt") and not hidden:
                self.parts.append(f"[{attributes['alt']}]")
            return
        self._open.append((name, hidden))
        self._names[name] += 1
        if name == "a":
            self._links.append(attributes.get("href", ""))

    def _end(self, name: str) -> None:
        if name == "a" and self._links:
            address = self._links.pop()
            if not self._unseen and address.startswith(("http://", "https://", "mailto:")):
                self.parts.append(f" <{address}>")
        while self._names[name]:  # elements that are open inside it end too
            ended, _ = self._open.pop()
            self._names[ended] -= 1
            if ended == name:
                break
        if name in _BLOCKS:
            self.parts.append("\n")

    def _text(self, text: str) -> None:
        if not self._unseen:
            self.parts.append(text)
        elif self._open[-1][0] not in _SKIPPED:
            self.left_out += len(text.strip())


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    style = "".join(attributes.get("style", "").lower().split())
    return "hidden" in attributes or _UNSEEN.search(style) is not None
