"""Split HTML of mails into tags and text, in linear time for any input.

Python's own parser takes quadratic time for tags and comments that never end, and any sender of a
mail can exploit this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape

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
