"""Find encoded parts of a text and decode them."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import urllib.parse
from collections.abc import Callable, Iterator

from text_scanner.linear import compile_linear
from text_scanner.views import Builder, View

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_WRAPPED = re.compile(r"(?:[A-Za-z0-9+/]{40,80}\r?\n){1,}[A-Za-z0-9+/]{4,80}={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}[ :,]?|\\x[0-9A-Fa-f]{2}|0x[0-9A-Fa-f]{2}[ ,]{0,2}){12,}")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[\w.,~+/:=&@-]{0,60}){3,}")
_ANY_BASE64 = compile_linear(rb"[A-Za-z0-9+/_-]{16}")
_ANY_WRAPPED = compile_linear(rb"[A-Za-z0-9+/]{40}\r?\n[A-Za-z0-9+/]{4}")
_ANY_HEX = compile_linear(
    rb"(?:[0-9A-Fa-f]{2}[ :,]?|\\x[0-9A-Fa-f]{2}|0x[0-9A-Fa-f]{2}[ ,]{0,2}){12}"
)
_ANY_ENTITY = compile_linear(rb"&(?:#\d{2,7}|#[xX][0-9A-Fa-f]{1,6}|[a-zA-Z]{2,8});")
_ANY_BINARY = compile_linear(rb"(?:[01]{8}[ ,]?){8}")
_ENTITY = re.compile(r"(?:&(?:#\d{2,7}|#[xX][0-9A-Fa-f]{1,6}|[a-zA-Z]{2,8});[ \w.,:/@-]{0,60}){3,}")
_ESCAPE = re.compile(
    r"(?:\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}){3,}(?:[ \w.,:/@-]{0,20}\\u[0-9A-Fa-f]{4})*"
)
_BINARY = re.compile(r"(?:[01]{8}[ ,]?){8,}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{4,}")
_SELECTED = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{6,}")
_HEX_DIGITS = re.compile(r"\\x|0x|[^0-9A-Fa-f]")
_TEXTUAL = re.compile(r"[A-Za-z]{2,}")
_SEPARATOR = "\n\n"
_KNOWN = [
    "ignore",
    "previous",
    "instructions",
    "password",
    "always",
    "never",
    "secret",
    "credentials",
    "forward",
    "upload",
    "approval",
    "without",
    "user",
    "system",
    "prompt",
    "memory",
    "silently",
    "disregard",
    "rules",
    "token",
    "approved",
    "send",
    "email",
    "keys",
    "confirmation",
    "assistant",
]
_ROT13 = compile_linear(r"\b(?:" + "|".join(codecs.encode(w, "rot13") for w in _KNOWN) + r")\b")
_REVERSED = compile_linear(r"\b(?:" + "|".join(w[::-1] for w in _KNOWN) + r")\b")


def decoded_views(content: str) -> Iterator[View]:
    """Yield one view for each encoding, such as base64, that has readable text in `content`."""
    data = content.encode("utf-8", "replace")
    if _ANY_BASE64.search(data):
        yield from _view("base64", _base64(content, wrapped=bool(_ANY_WRAPPED.search(data))))
    if _ANY_HEX.search(data):
        yield from _view("hexadecimal", _each(_HEX, content, _from_hex))
    if content.count("%") >= 3:
        yield from _view("percent encoding", _each(_PERCENT, content, _from_percent))
    if "&" in content and _ANY_ENTITY.search(data):
        yield from _view("HTML entities", _each(_ENTITY, content, _from_entities))
    if "\\u" in content or "\\U" in content:
        yield from _view("escapes", _each(_ESCAPE, content, _from_escapes))
    if _ANY_BINARY.search(data):
        yield from _view("binary digits", _each(_BINARY, content, _from_binary))
    if not content.isascii():
        yield from _view("tag characters", _each(_TAGS, content, _from_tags))
        yield from _view("variation selectors", _each(_SELECTED, content, _from_selectors))


def turned_views(folded: View) -> Iterator[View]:
    """Yield views of ROT13 and of reversed lines, if `folded` has words that suggest them."""
    for kind, pattern, turn in (
        ("ROT13", _ROT13, lambda line: codecs.encode(line, "rot13")),
        ("reversed text", _REVERSED, lambda line: line[::-1]),
    ):
        data = folded.data
        if (
            len(
                {match.group() for match, _ in zip(pattern.finditer(data), range(50), strict=False)}
            )
            < 2
        ):
            continue
        builder = Builder(kind)
        at = 0
        for line in folded.text.split("\n"):
            if len(line) > 8:
                builder.add(turn(line) + _SEPARATOR, *folded.origin(at, at + len(line)))
            at += len(line) + 1
        view = builder.view()
        if view is not None:
            yield view


def _view(kind: str, stretches: Iterator[tuple[int, int, str]]) -> Iterator[View]:
    builder = Builder(kind)
    for start, end, text in stretches:
        builder.add(text + _SEPARATOR, start, end)
    view = builder.view()
    if view is not None:
        yield view


def _each(
    pattern: re.Pattern[str], content: str, decode: Callable[[str], str]
) -> Iterator[tuple[int, int, str]]:
    for found in pattern.finditer(content):
        text = decode(found[0])
        if text and text != found[0] and readable(text):
            yield found.start(), found.end(), text


def readable(text: str) -> bool:
    """Return whether `text`, the result of decoding, is language and not noise."""
    sample = text[:4000]
    good = sum(character.isprintable() or character in "\n\t\r" for character in sample)
    return (
        len(sample) >= 6
        and good >= 0.95 * len(sample)
        and (_TEXTUAL.search(sample) is not None or not sample.isascii())
    )


def _base64(content: str, *, wrapped: bool) -> Iterator[tuple[int, int, str]]:
    reached = 0
    for found in _WRAPPED.finditer(content) if wrapped else ():
        text = _from_base64(re.sub(r"\s", "", found[0]))
        if text:
            yield found.start(), found.end(), text
            reached = found.end()
    for found in _BASE64.finditer(content):
        if found.start() < reached:
            continue
        text = _from_base64(found[0])
        if text:
            yield found.start(), found.end(), text


def _from_base64(digits: str) -> str:
    body = digits.rstrip("=").replace("-", "+").replace("_", "/")
    # Words and paths have the same letters, but text in base64 mixes cases or has digits.
    if body.islower() or (body.isalpha() and body[1:].islower()) or len(body) % 4 == 1:
        return ""
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    text = _utf8(raw)
    return text if text and readable(text) else ""


def _utf8(raw: bytes) -> str:
    if raw[1::2].count(0) * 3 > len(raw):
        return raw.decode("utf-16-le", "ignore")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _from_hex(digits: str) -> str:
    plain = _HEX_DIGITS.sub("", digits)
    try:
        return _utf8(bytes.fromhex(plain[: len(plain) // 2 * 2]))
    except ValueError:
        return ""


def _from_percent(text: str) -> str:
    return urllib.parse.unquote_plus(text, errors="replace") if text.count("%") >= 3 else ""


def _from_entities(text: str) -> str:
    return html.unescape(text)


def _from_escapes(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = int(found[0][2:], 16)
        return chr(code) if code <= 0x10FFFF else ""

    return re.sub(r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}", character, text)


def _from_binary(digits: str) -> str:
    bits = re.sub("[^01]", "", digits)
    return _utf8(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8)))


def _from_tags(text: str) -> str:
    return "".join(chr(ord(character) - 0xE0000) for character in text)


def _from_selectors(text: str) -> str:
    codes = (ord(character) for character in text)
    raw = bytes(code - 0xFE00 if code <= 0xFE0F else code - 0xE0100 + 16 for code in codes)
    return _utf8(raw)
