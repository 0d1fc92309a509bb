"""Create decoded forms of code: parts joined and encodings undone.

The result is always text. An encoding that cannot be undone within small limits is left unchanged.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import sys
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from text_scanner.linear import compile_linear

MAX_STRETCHES = 500
"""The maximum number of stretches of each encoding that are decoded in one file."""
MAX_OPENED = 200_000
"""The maximum number of bytes of the decoded stretches of one encoding."""
MAX_STRINGS = 200_000
"""The maximum number of bytes of a file whose quoted texts are read backwards."""

_PIECES = compile_linear(
    rb"[a-z0-9.:/-](?:[\"']{1,2}|\\)[a-z0-9.:/-]|[\"']\s*\+\s*[\"']|\\\r?\n|\$\{?ifs", any_case=True
)
"""Matches if `_joined` may change the code. Most code has no match."""
_JOINS = re.compile(
    rb"""(?<=[A-Za-z0-9.:/-])(?:["']{1,2}|\\)(?=[A-Za-z0-9.:/-])"""  # c""url, b"a"sh, c\url
    rb"""|["'][ \t]*\+[ \t]*["']|\\\r?\n"""  # 'o' + 's', and continued lines
)
_SPACES = re.compile(rb"\$\{IFS\}|\$IFS(?:\$9)?")
_BASE64 = compile_linear(rb"[a-z0-9+/_-]{24,}={0,2}", any_case=True)
_HEX = compile_linear(rb"\b(?:[0-9a-f]{2}){16,}\b", any_case=True)
_ESCAPES = compile_linear(
    rb"(?:\\x[0-9a-f]{2}|\\u00[0-9a-f]{2}|\\[0-3][0-7]{2}){6,}", any_case=True
)
_NUMBERS = compile_linear(
    rb"(?:(?:chr\s*\(\s*)?\b\d{2,3}\b\s*\)?\s*[+.,&]\s*){8,}(?:chr\s*\(\s*)?\d{2,3}", any_case=True
)
_STRINGS = re.compile(rb"""(["'])((?:\\.|(?!\1)[^\\\n]){8,4000})\1""")


@dataclass(frozen=True, slots=True)
class Unfolded:
    """Another form of a file's text.

    `places` are pairs (offset of a piece in `data`, its offset in the file). `hidden` says whether
    the text was encoded.
    """

    data: bytes
    places: tuple[tuple[int, int], ...]
    how: str
    hidden: bool

    def origin(self, offset: int) -> int:
        """Return the offset in the file of the text at `offset` in `data`."""
        return self.places[bisect_right(self.places, (offset, sys.maxsize)) - 1][1]


def unfolded(data: bytes) -> Iterator[Unfolded]:
    """Yield the other forms of the code `data`, if they differ from it."""
    if _PIECES.search(data):
        joined = _JOINS.sub(b"", _SPACES.sub(b" ", data))
        if joined != data:
            yield Unfolded(joined, ((0, 0),), "pieces joined", False)
    yield from opened(data)
    head = data[:MAX_STRINGS]
    if b"[::-1]" in head or b".reverse()" in head or b"| rev" in head:
        yield from _strings(head, "backwards", lambda text: text[::-1])
    if b"rot13" in head or b"rot_13" in head or b"A-Za-z" in head:
        yield from _strings(head, "ROT13", _rot13)


def opened(data: bytes) -> Iterator[Unfolded]:
    """Yield the decoded text of base64, hexadecimal, escapes and numbers of letters in `data`."""
    for pattern, how, decode in (
        (_BASE64, "base64", _from_base64),
        (_HEX, "hexadecimal", _from_hex),
        (_ESCAPES, "escapes", _from_escapes),
        (_NUMBERS, "numbers of letters", _from_numbers),
    ):
        yield from _together(_decoded(pattern, how, decode, data), how)


def _decoded(
    pattern: Any, how: str, decode: Callable[[bytes], bytes], data: bytes
) -> Iterator[tuple[int, bytes]]:
    tried = 0
    for found in pattern.finditer(data):
        if how == "base64" and not _mixed(found[0]):
            continue
        tried += 1
        if tried > MAX_STRETCHES:
            return
        text = _as_text(decode(found[0]))
        if text:
            yield found.start(), text


def _strings(data: bytes, how: str, change: Callable[[bytes], bytes]) -> Iterator[Unfolded]:
    found = islice(_STRINGS.finditer(data), MAX_STRETCHES)
    yield from _together(((held.start(), change(held[2])) for held in found), how)


def _together(stretches: Iterator[tuple[int, bytes]], how: str) -> Iterator[Unfolded]:
    """Yield one form with all decoded stretches of the encoding `how`."""
    parts: list[bytes] = []
    places: list[tuple[int, int]] = []
    length = 0
    for start, text in stretches:
        places.append((length, start))
        parts.append(text)
        length += len(text) + 1
        if length > MAX_OPENED:
            break
    if parts:
        yield Unfolded(b"\n".join(parts), tuple(places), how, True)


def _rot13(text: bytes) -> bytes:
    return codecs.encode(text.decode("latin-1"), "rot13").encode("latin-1")


def _mixed(text: bytes) -> bool:
    """Return whether `text` may be base64: it has both cases of letters and few separators."""
    head = text[:4096]
    pieces = head.count(b"/") + head.count(b"_") + head.count(b"-")
    return pieces <= max(2, len(head) // 16) and head.lower() != head != head.upper()


def _from_base64(text: bytes) -> bytes:
    plain = text.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")[:MAX_OPENED]
    plain = plain[: len(plain) // 4 * 4] if len(plain) % 4 == 1 else plain
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return b""


def _from_hex(text: bytes) -> bytes:
    return bytes.fromhex(text[:MAX_OPENED].decode())


def _from_escapes(text: bytes) -> bytes:
    codes = re.findall(
        rb"\\x([0-9a-fA-F]{2})|\\u00([0-9a-fA-F]{2})|\\([0-3][0-7]{2})", text[:MAX_OPENED]
    )
    return bytes(int(h or u, 16) if h or u else int(o, 8) for h, u, o in codes)


def _from_numbers(text: bytes) -> bytes:
    return bytes(
        number for number in map(int, re.findall(rb"\d+", text[:MAX_OPENED])) if number < 256
    )


def _as_text(data: bytes) -> bytes:
    """Return `data` as text, decompressed and decoded; b"" if it is not text."""
    if data[:2] in (b"\x78\x9c", b"\x78\xda", b"\x78\x01"):
        try:
            data = zlib.decompressobj().decompress(data, MAX_OPENED)
        except zlib.error:
            return b""
    elif data[:2] == b"\x1f\x8b":
        try:
            data = zlib.decompressobj(31).decompress(data, MAX_OPENED)
        except zlib.error:
            return b""
    if len(data) > 8 and data[1::2].count(0) > len(data) // 2 - 2:
        data = data[::2]
    printable = sum(1 for byte in data[:200] if 32 <= byte < 127 or byte in (9, 10, 13))
    return data if len(data) >= 12 and printable >= 0.95 * len(data[:200]) else b""
