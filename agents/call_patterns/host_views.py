"""Views of a call's texts for the search for hosts: as written, and as programs interpret them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

from agents.call_patterns.fields import any_strings, any_values, holds_host
from agents.call_patterns.steps import TooMuchToRead
from sandbox.backends.normal_form import normal_form

MOST_BYTES = 24_000_000
"""Limit for all views of a call. A reply has up to 4 MB; some characters expand to eighteen."""

_SHELL = b"\"'\\\t\r\n"
"""Characters that a shell or a URL parser removes: `ev"il.example`, `ev\\il.example`."""
_IGNORED = tuple(
    character.encode()
    for character in map(
        chr, (0xAD, 0x34F, *range(0x1806, 0x180E), 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)
    )
) + tuple(chr(code).encode() for code in range(0xFE00, 0xFE10))
"""Invisible characters, and characters that IDNA removes."""
_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}")
_PIECE = 64 * 1024


def views_of(tool_input: Any) -> list[bytes]:
    """Return one item for each view of an input: all its texts, joined by spaces.

    The views are the texts as written and as programs interpret them: without `%` escapes, in
    folded form, and without shell quotes and invisible characters. Equal views occur once. Raises
    `TooMuchToRead` if they have more than `MOST_BYTES` together.
    """
    written = " ".join(any_strings(tool_input)).encode(errors="replace")
    found: dict[bytes, None] = {}
    for view in (written, _unquoted(written)):
        for each in (view, _folded(view)):
            _add(found, each)
            _add(found, _bare(each))
    return list(found)


def lines_of(tool_input: Any) -> list[bytes]:
    """Return the texts of host fields in each view, as lines. Raises `TooMuchToRead`.

    A text has a line for each part between `@`.
    """
    lines = "\n".join(
        text.replace("\n", " ").replace("@", "\n") for text in any_values(tool_input, holds_host)
    ).encode(errors="replace")
    found: dict[bytes, None] = {}
    _add(found, lines)
    _add(found, _folded(lines))
    return list(found)


def _add(found: dict[bytes, None], view: bytes) -> None:
    found[view] = None
    if sum(map(len, found)) > MOST_BYTES:
        raise TooMuchToRead


def _bare(view: bytes) -> bytes:
    bare = view.translate(None, _SHELL)
    if not bare.isascii():
        for ignored in _IGNORED:
            bare = bare.replace(ignored, b"")
    return bare


def _unquoted(view: bytes) -> bytes:
    if _ESCAPE.search(view) is None:
        return view
    pieces, start = [], 0
    while start < len(view):
        end = start + _PIECE
        if b"%" in view[end - 2 : end]:
            end = view.rindex(b"%", end - 2, end)  # do not cut an escape
        pieces.append(unquote_to_bytes(view[start:end]))
        start = end
    return b"".join(pieces).decode(errors="replace").encode()


def _folded(view: bytes) -> bytes:
    """Return lower case, with the plain forms of letters and dots that have several forms."""
    if view.isascii():
        return view
    pieces, size = [], 0
    for piece in _pieces(view):
        folded = normal_form("NFKC", piece).casefold().replace("\u3002", ".").encode()
        size += len(folded)
        if size > MOST_BYTES:
            raise TooMuchToRead
        pieces.append(folded)
    return b"".join(pieces)


def _pieces(view: bytes) -> Iterator[str]:
    """Yield parts that fold like the whole: cut before ASCII, or else not before a mark."""
    start = 0
    while start < len(view):
        end = min(start + _PIECE, len(view))
        if end < len(view):
            end = _cut(view, start, end)
        yield view[start:end].decode(errors="replace")
        start = end


def _cut(view: bytes, start: int, end: int) -> int:
    for at in range(end, start, -1):
        if view[at] < 0x80:
            return at
    for at in range(end, max(start, end - 400), -1):
        if view[at] >= 0xC0:  # the first byte of a character
            character = view[at : at + 4].decode(errors="ignore")[:1]
            jamo = "\u1160" <= character <= "\u11ff"
            if character and unicodedata.category(character)[0] != "M" and not jamo:
                return at
    while view[end] & 0xC0 == 0x80:
        end -= 1
    return end
