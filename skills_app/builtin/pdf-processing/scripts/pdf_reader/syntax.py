"""Parse the objects of a PDF.

Numbers are int and float, strings are bytes, arrays are lists, dictionaries have str keys; null is
None. Names, references and operators have their own classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pdf_reader.errors import PdfError

MAX_NESTING = 60


class Name(str):
    """A name object, without its slash."""

    __slots__ = ()


class Operator(str):
    """A bare word such as `obj`, `stream` or `Tj`."""

    __slots__ = ()


@dataclass(frozen=True)
class Reference:
    number: int
    generation: int


@dataclass(eq=False)
class Stream:
    """A stream object. `raw` has its bytes in the file, before any filter."""

    head: dict[str, Any]
    raw: bytes


END = Operator("")
"""Returned by the parser at the end of the data."""

_SPACE = rb"\x00\t\n\x0c\r "
_REGULAR = rb"[^\x00\t\n\x0c\r ()<>\[\]{}/%]"
_TOKEN = re.compile(
    rb"(?:[" + _SPACE + rb"]+|%[^\r\n]*)*"
    rb"(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?!" + _REGULAR + rb")"
    rb"|/(?P<name>" + _REGULAR + rb"*)"
    rb"|(?P<mark><<|>>|[\[\]{}])"
    rb"|<(?P<hex>[^<>]*)>"
    rb"|(?P<string>\()"
    rb"|(?P<word>" + _REGULAR + rb"+)"
    rb"|(?P<stray>[)<>]))"
)
_REFERENCE = re.compile(rb"[" + _SPACE + rb"]+(\d+)[" + _SPACE + rb"]+R(?!" + _REGULAR + rb")")
_IN_STRING = re.compile(rb"[()\\\r]")
_HEX_IN_NAME = re.compile(rb"#([0-9A-Fa-f]{2})")
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_CLOSE_ARRAY, _CLOSE_DICTIONARY = Operator("]"), Operator(">>")
_CONSTANTS = {b"true": True, b"false": False, b"null": None}


class Parser:
    """Reads the objects of `data` one by one, starting at `position`."""

    def __init__(self, data: bytes, position: int = 0, *, references: bool = True) -> None:
        self.data = data
        self.position = position
        self._references = references

    def next(self, depth: int = 0) -> Any:
        """Return the next object or operator, or `END`. Raises `PdfError`."""
        if depth > MAX_NESTING:
            raise PdfError("Its objects are nested too deeply: the file is damaged.")
        found = _TOKEN.match(self.data, self.position)
        if found is None:
            self.position = len(self.data)
            return END
        self.position = found.end()
        kind = found.lastgroup
        text = found[kind] if kind else b""
        if kind == "number":
            return self._number(text)
        if kind == "name":
            return _name(text)
        if kind == "string":
            return self._string()
        if kind == "hex":
            return _hexadecimal(text)
        if kind == "mark":
            if text == b"[":
                return self._array(depth)
            if text == b"<<":
                return self._dictionary(depth)
            return Operator(text.decode())
        if kind == "word" and text in _CONSTANTS:
            return _CONSTANTS[text]
        return Operator(text.decode("latin-1"))

    def _number(self, text: bytes) -> Any:
        if b"." in text:
            return float(text)
        if len(text) > 20:
            return 0
        if self._references and text.isdigit():
            found = _REFERENCE.match(self.data, self.position)
            if found and len(found[1]) <= 10:
                self.position = found.end()
                return Reference(int(text), int(found[1]))
        return int(text)

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while True:
            item = self.next(depth + 1)
            if isinstance(item, Operator):
                if item in (_CLOSE_ARRAY, END):
                    return items
                if item == _CLOSE_DICTIONARY:
                    self.position -= 2
                    return items
                continue
            items.append(item)

    def _dictionary(self, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while True:
            key = self.next(depth + 1)
            if isinstance(key, Operator):
                if key in (_CLOSE_DICTIONARY, END):
                    return entries
                if key in ("endobj", "stream"):
                    self.position -= len(key)
                    return entries
            if not isinstance(key, Name):
                continue
            value = self.next(depth + 1)
            if isinstance(value, Operator):
                if value in (_CLOSE_DICTIONARY, END):
                    return entries
                continue
            entries[str(key)] = value

    def _string(self) -> bytes:
        parts: list[bytes] = []
        open_brackets, start, data = 1, self.position, self.data
        while True:
            found = _IN_STRING.search(data, self.position)
            if found is None:
                self.position = len(data)
                parts.append(data[start:])
                return b"".join(parts)
            mark, self.position = found[0], found.end()
            if mark == b"(":
                open_brackets += 1
            elif mark == b")":
                open_brackets -= 1
                if not open_brackets:
                    parts.append(data[start : found.start()])
                    return b"".join(parts)
            else:
                parts.append(data[start : found.start()])
                parts.append(self._line_end() if mark == b"\r" else self._escape())
                start = self.position

    def _line_end(self) -> bytes:
        if self.data[self.position : self.position + 1] == b"\n":
            self.position += 1
        return b"\n"

    def _escape(self) -> bytes:
        following = self.data[self.position : self.position + 1]
        octal = re.compile(rb"[0-7]{1,3}").match(self.data, self.position)
        if octal:
            self.position = octal.end()
            return bytes([int(octal[0], 8) & 255])
        self.position += 1
        if following == b"\r":
            self._line_end()
            return b""
        if following == b"\n":
            return b""
        return _ESCAPES.get(following, following)


def _name(text: bytes) -> Name:
    if b"#" in text:
        text = _HEX_IN_NAME.sub(lambda found: bytes([int(found[1], 16)]), text)
    return Name(text.decode("utf-8", "replace"))


def _hexadecimal(text: bytes) -> bytes:
    digits = re.sub(rb"[^0-9A-Fa-f]", b"", text)
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
