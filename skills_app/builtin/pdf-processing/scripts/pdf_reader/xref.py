"""Find the positions of a file's objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pdf_reader.errors import PdfError
from pdf_reader.filters import decode
from pdf_reader.syntax import Parser, Stream

MAX_SECTIONS = 1_000
MAX_NUMBER = 8_388_607
_START = re.compile(rb"startxref[\x00\t\n\x0c\r ]+(\d{1,12})")
_OBJECT = re.compile(
    rb"(?<![0-9])(\d{1,10})[\x00\t\n\x0c\r ]+(\d{1,5})[\x00\t\n\x0c\r ]+obj(?![a-z])"
)
_TRAILER = re.compile(rb"trailer[\x00\t\n\x0c\r ]*(?=<<)")
_ROW = re.compile(rb"[\x00\t\n\x0c\r ]*(\d{1,12})[ \t]+(\d{1,7})[ \t]+([nf])")
_HEADING = re.compile(rb"[\x00\t\n\x0c\r ]*(\d{1,10})[ \t]+(\d{1,10})(?![ \t]+[nf])")


@dataclass(frozen=True)
class Entry:
    """The place of an object: at `offset` of the file, or in the object stream `in_stream`."""

    offset: int = 0
    in_stream: int | None = None


Entries = dict[int, Entry]
ParseAt = Callable[[int], Any]


def read_xref(data: bytes, parse_at: ParseAt) -> tuple[Entries, dict[str, Any]]:
    """Return (entries by object number, trailer).

    Later sections have priority. Raises `PdfError`.
    """
    starts = _START.findall(data, max(0, len(data) - 4096))
    if not starts:
        raise PdfError("The file has no end.")
    entries: Entries = {}
    trailer: dict[str, Any] = {}
    waiting = [int(starts[-1])]
    seen: set[int] = set()
    while waiting:
        offset = waiting.pop(0)
        if offset in seen or len(seen) > MAX_SECTIONS:
            continue
        seen.add(offset)
        if not 0 <= offset < len(data):
            raise PdfError("A table of objects is outside the file.")
        found = re.compile(rb"[\x00\t\n\x0c\r ]*xref").match(data, offset)
        section, head = _table(data, found.end()) if found else _stream(data, offset, parse_at)
        for number, entry in section.items():
            entries.setdefault(number, entry)
        for key, value in head.items():
            trailer.setdefault(key, value)
        # A file for old and new readers has both. The stream has priority over earlier sections.
        for key in ("XRefStm", "Prev"):
            if isinstance(head.get(key), int):
                waiting.append(head[key])
    if "Root" not in trailer:
        raise PdfError("The file does not name its catalogue.")
    return {n: entry for n, entry in entries.items() if entry.offset >= 0}, trailer


_FREE = Entry(offset=-1)


def _table(data: bytes, position: int) -> tuple[Entries, dict[str, Any]]:
    entries: Entries = {}
    while heading := _HEADING.match(data, position):
        first, count = int(heading[1]), int(heading[2])
        position = heading.end()
        for number in range(first, first + count):
            row = _ROW.match(data, position)
            if row is None:
                break
            position = row.end()
            entries[number] = Entry(int(row[1])) if row[3] == b"n" else _FREE
    found = re.compile(rb"[\x00\t\n\x0c\r ]*trailer").match(data, position)
    head = Parser(data, found.end()).next() if found else None
    if not isinstance(head, dict):
        raise PdfError("A table of objects has no trailer.")
    return entries, head


def _stream(data: bytes, offset: int, parse_at: ParseAt) -> tuple[Entries, dict[str, Any]]:
    found = _OBJECT.match(
        data,
        offset
        + len(data[offset : offset + 20])
        - len(data[offset : offset + 20].lstrip(b"\x00\t\n\x0c\r ")),
    )
    stream = parse_at(found.end()) if found else None
    if not isinstance(stream, Stream) or stream.head.get("Type") != "XRef":
        raise PdfError("The table of objects is not at the position that the file names.")
    return _rows_of(stream), stream.head


def _rows_of(stream: Stream) -> Entries:
    head = stream.head
    filters = head.get("Filter", [])
    filters = filters if isinstance(filters, list) else [filters]
    given = head.get("DecodeParms") or {}
    given = given if isinstance(given, list) else [given]
    given = [each if isinstance(each, dict) else {} for each in given] or [{}]
    content = decode(stream.raw, [str(name) for name in filters], given[: len(filters)])
    widths = head.get("W")
    if (
        not isinstance(widths, list)
        or len(widths) < 3
        or not all(isinstance(width, int) and 0 <= width <= 8 for width in widths)
    ):
        raise PdfError("The table of objects is damaged.")
    a, b, c = widths[:3]
    size = a + b + c
    index = head.get("Index") or [0, head.get("Size", 0)]
    entries: Entries = {}
    at = 0
    for first, count in zip(index[::2], index[1::2], strict=False):
        for number in range(first, min(first + count, MAX_NUMBER)):
            row = content[at : at + size]
            if len(row) < size or not size:
                break
            at += size
            kind = int.from_bytes(row[:a], "big") if a else 1
            second = int.from_bytes(row[a : a + b], "big")
            if kind == 1:
                entries[number] = Entry(second)
            elif kind == 2:
                entries[number] = Entry(in_stream=second)
            elif kind == 0:
                entries[number] = _FREE
    return entries


def find_objects(data: bytes, parse_at: ParseAt) -> tuple[Entries, dict[str, Any]]:
    """Return (the last object `n g obj` of each number, the trailers), found by search."""
    entries: Entries = {}
    trailer: dict[str, Any] = {}
    for found in _OBJECT.finditer(data):
        if int(found[1]) <= MAX_NUMBER:
            entries[int(found[1])] = Entry(found.start())
    for found in _TRAILER.finditer(data):
        head = Parser(data, found.end()).next()
        if isinstance(head, dict):
            trailer.update(head)
    if "Root" not in trailer:
        for found in re.finditer(rb"/Type[\x00\t\n\x0c\r ]*/XRef", data):
            before = max(
                (
                    m.end()
                    for m in _OBJECT.finditer(data, max(0, found.start() - 2000), found.start())
                ),
                default=-1,
            )
            stream = parse_at(before) if before >= 0 else None
            if isinstance(stream, Stream):
                trailer.update(stream.head)
    return entries, trailer
