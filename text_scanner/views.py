"""Create other forms of a text: without invisible characters, in Latin letters, decoded.

A view records which part of the content each of its characters comes from, so that a finding in a
view can be shown in the content.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from text_scanner.characters import INVISIBLE_CLASS
from text_scanner.confusables import LOOKALIKES, TABLE
from text_scanner.lexicon import lexicon
from text_scanner.linear import compile_linear, spans
from text_scanner.text import fold


class Piece(NamedTuple):
    """The part content[origin:origin_end] that became text[start:end] of a view.

    `exact` says that each character comes from one character.
    """

    start: int
    end: int
    origin: int
    origin_end: int
    exact: bool


@dataclass(slots=True)
class View:
    """A folded form of the content that the checks examine.

    Attributes:
        kind: How the view was made, such as "base64"; "" for the content itself.
        pieces: Where the parts of the text come from in the content. If it is empty, the offsets
            are those of the content.
        joined: Whether the words have no spaces between them.
    """

    text: str
    kind: str = ""
    pieces: list[Piece] = field(default_factory=list)
    joined: bool = False
    _starts: list[int] = field(default_factory=list)
    _data: bytes | None = None

    @property
    def data(self) -> bytes:
        """Return the text in UTF-8."""
        if self._data is None:
            self._data = self.text.encode("utf-8", "replace")
        return self._data

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return (start, end) of the part of the content that text[start:end] comes from."""
        if not self.pieces:
            return start, end
        if not self._starts:
            self._starts = [piece.start for piece in self.pieces]
        first = self.pieces[max(0, bisect_right(self._starts, start) - 1)]
        last = self.pieces[max(0, bisect_right(self._starts, max(start, end - 1)) - 1)]
        begin = first.origin + (start - first.start) if first.exact else first.origin
        begin = min(begin, first.origin_end)
        finish = last.origin + (end - last.start) if last.exact else last.origin_end
        return begin, max(begin, min(finish, last.origin_end))


class Builder:
    """Build a view from parts of the content."""

    def __init__(self, kind: str, *, joined: bool = False) -> None:
        self._kind = kind
        self._joined = joined
        self._parts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0

    def add(self, text: str, origin: int, origin_end: int, *, exact: bool = False) -> None:
        if not text:
            return
        end = self._length + len(text)
        self._pieces.append(Piece(self._length, end, origin, origin_end, exact))
        self._parts.append(text)
        self._length = end

    def view(self) -> View | None:
        if not self._parts:
            return None
        return View("".join(self._parts), self._kind, self._pieces, self._joined)


_LIGATURES = {
    "ﬀ": "ff",
    "ﬁ": "fi",
    "ﬂ": "fl",
    "ﬃ": "ffi",
    "ﬄ": "ffl",
    "ﬆ": "st",
    "㏄": "cc",
    "ĳ": "ij",
}
_ODD = re.compile(f"[{INVISIBLE_CLASS}]+|[{''.join(_LIGATURES)}]")
_ANY_ODD = compile_linear(f"[{INVISIBLE_CLASS}{''.join(_LIGATURES)}]".encode())
_LOOKALIKE = re.compile(f"[{''.join(LOOKALIKES)}]")
_LEET = re.compile(r"[a-z013457@$!|]{4,20}")
_ANY_LEET = compile_linear(rb"[a-z][013457@$!|][a-z]|[01345@$][a-z]{2}|[a-z]{2}[013457@$]\b")
_LEET_I = str.maketrans("013457@$!|", "oieastasil")
_LEET_L = str.maketrans("013457@$!|", "oleastasil")
_MARKS = r"(?:\*{1,3}|__|`|\\|</?[a-z]{1,6}/?>|<!--.{0,40}?-->|[\"'] ?\+ ?[\"']|\[\]|\{\}|-\n|\|)"
_MARKUP = re.compile(rf"(?<=[a-z]){_MARKS}(?=[a-z])")
_ANY_MARKUP = compile_linear(rf"[a-z]{_MARKS}[a-z]".encode())
_SPACED = re.compile(r"(?<![a-z0-9])[a-z0-9](?:[ ._*·-]{1,3}[a-z0-9](?![a-z0-9])){5,}")
_ANY_SPACED = compile_linear(rb"\b[a-z0-9](?:[ ._*-]{1,3}[a-z0-9]){5}\b")
_NAMES = compile_linear(
    rb"\b(?:[a-z]{2,20}(?:_[a-z]{2,20}){2,12}|[a-z]{2,20}(?:-[a-z]{2,20}){3,12})\b"
)
_MAX_NAMES = 2_000
_SEPARATOR = "\n\n"


def plain_view(content: str) -> View:
    """Return the view of `content` that all checks read.

    It has no invisible characters and is folded by `text.fold`: lower case, no accents.
    """
    data = content.encode("utf-8", "replace")
    if not _ANY_ODD.search(data):
        return View(fold(content))
    builder = Builder("")
    at = 0
    for found in _ODD.finditer(content):
        start, end = found.span()
        builder.add(fold(content[at:start]), at, start, exact=True)
        builder.add(_LIGATURES.get(found[0], ""), start, end)
        at = end
    builder.add(fold(content[at:]), at, len(content), exact=True)
    return builder.view() or View("")


def derived_views(plain: View) -> Iterator[View]:
    """Yield views of `plain` in which disguised words are readable, one for each kind of disguise.

    The kinds are lookalike letters, digits as letters, markup within words, spaced-out letters, and
    names such as `send_all_keys`. Each view contains only the lines or words concerned. Digits as
    letters have two views: `1` is read as `i` and as `l`.
    """
    text, data = plain.text, plain.data
    if not text.isascii() and _LOOKALIKE.search(text):
        yield from _lines(
            plain, "lookalike letters", _LOOKALIKE, lambda line: line.translate(TABLE)
        )
    if _ANY_LEET.search(data) and _leet(text):
        yield from _lines(plain, "leetspeak", _LEET_WORD, _read_leet_i)
        yield from _lines(plain, "leetspeak", _LEET_WORD, _read_leet_l)
    if _ANY_MARKUP.search(data):
        yield from _lines(plain, "markup within words", _MARKUP, lambda line: _MARKUP.sub("", line))
    if _ANY_SPACED.search(data):
        yield from _spaced(plain)
    names = Builder("names of several words")
    for start, end in spans(_NAMES, data, ascii_only=len(data) == len(text), limit=_MAX_NAMES):
        words = re.sub("[_-]", " ", text[start:end])
        names.add(words + _SEPARATOR, *plain.origin(start, end))
    view = names.view()
    if view is not None:
        yield view


_LEET_WORD = re.compile(r"[a-z][013457@$!|]|[013457@$!|][a-z]")


def _read_leet_i(line: str) -> str:
    return line.translate(_LEET_I)


def _read_leet_l(line: str) -> str:
    return line.translate(_LEET_L)


def _leet(text: str) -> bool:
    """Return whether three known words appear when digits and `@$!|` are read as letters.

    The words must be different and have at least four letters.
    """
    known = set()
    for found in _LEET.finditer(text):
        word = found[0]
        if word.isalpha() or not _LEET_WORD.search(word):
            continue
        for table in (_LEET_I, _LEET_L):
            read = word.translate(table)
            if len(read) >= 4 and lexicon().knows(read):
                known.add(read)
        if len(known) >= 3:
            return True
    return False


def _lines(
    plain: View, kind: str, pattern: re.Pattern[str], change: Callable[[str], str]
) -> Iterator[View]:
    """Yield one view of the lines that match `pattern`, each replaced by the result of `change`.

    Yields nothing if no line matches.
    """
    builder = Builder(kind)
    text = plain.text
    reached = 0
    for found in pattern.finditer(text):
        if found.start() < reached:
            continue
        start = text.rfind("\n", reached, found.start()) + 1 or reached
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        line = text[start:end]
        changed = change(line)
        exact = not plain.pieces and len(changed) == len(line)
        builder.add(changed, *plain.origin(start, end), exact=exact)
        builder.add("\n", *plain.origin(end, end))
        reached = end
    view = builder.view()
    if view is not None:
        yield view


def _spaced(plain: View) -> Iterator[View]:
    """Yield a view of spaced-out words such as `i g n o r e`, with their letters joined."""
    builder = Builder("spaced-out letters", joined=True)
    for found in _SPACED.finditer(plain.text):
        letters = re.sub(r"[^a-z0-9]", "", found[0])
        if len(letters) >= 8:
            builder.add(letters + _SEPARATOR, *plain.origin(*found.span()))
    view = builder.view()
    if view is not None:
        yield view
