"""Read fonts: the characters of a string and their widths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pdf_reader.cmap import CMap
from pdf_reader.document import Document
from pdf_reader.encodings import BY_NAME, CMAP_CODECS, STANDARD, WIN_ANSI, glyph_text
from pdf_reader.errors import PdfError
from pdf_reader.standard_widths import standard_widths
from pdf_reader.syntax import Name, Stream

UNKNOWN = "\ufffd"
_PUT = re.compile(rb"dup\s+(\d{1,3})\s*/(\S+)\s+put")


@dataclass(frozen=True)
class Glyph:
    """A glyph. `width` is in thousandths of the font size. `text` may be `UNKNOWN`."""

    text: str
    width: float
    is_space: bool


class Font:
    """A simple font, in which each byte is one glyph."""

    def __init__(self, document: Document, head: dict[str, Any]) -> None:
        self.vertical = False
        self._document = document
        self._unicode = _to_unicode(document, head)
        self._codes = self._encoding(head)
        self._widths = self._read_widths(head)
        self._glyphs: dict[int, Glyph] = {}

    def glyphs(self, data: bytes) -> list[Glyph]:
        return [self._glyphs.get(code) or self._glyph(code) for code in data]

    def _glyph(self, code: int) -> Glyph:
        text = self._unicode.get(code)
        if text is None:
            text = self._codes.get(code, UNKNOWN)
        made = Glyph(text, self._widths.get(code, self._missing), code == 32)
        self._glyphs[code] = made
        return made

    def _encoding(self, head: dict[str, Any]) -> dict[int, str]:
        get = self._document.get
        given = get(head, "Encoding")
        base = str(given) if isinstance(given, Name) else str(get(given, "BaseEncoding", ""))
        codes = dict(BY_NAME[base]) if base in BY_NAME else self._built_in(head)
        at = 0
        for item in get(given, "Differences", []) if isinstance(given, dict) else []:
            item = self._document.resolve(item)
            if isinstance(item, int):
                at = item
            elif isinstance(item, Name):
                text = glyph_text(item)
                if text or item == ".notdef":
                    codes[at] = text
                else:
                    codes.pop(at, None)
                at += 1
        return codes

    def _built_in(self, head: dict[str, Any]) -> dict[int, str]:
        """Return the characters of the font's own encoding.

        This is the encoding of its Type 1 program, if it has one, else the usual encoding.
        """
        descriptor = self._document.get(head, "FontDescriptor", {})
        program = self._document.get(descriptor, "FontFile")
        if isinstance(program, Stream):
            try:
                found = _PUT.findall(self._document.decoded(program)[:100_000])
            except PdfError:
                found = []
            if found:
                named = {int(code): glyph_text(name.decode("latin-1")) for code, name in found}
                return {code: text for code, text in named.items() if text}
        flags = self._document.get(descriptor, "Flags", 0)
        embedded = any(key in descriptor for key in ("FontFile", "FontFile2", "FontFile3"))
        if isinstance(flags, int) and flags & 4 and embedded:
            # The codes of a symbolic font are probably ASCII up to 126.
            return {code: chr(code) for code in range(32, 127)}
        subtype = self._document.get(head, "Subtype")
        return dict(WIN_ANSI if subtype == "TrueType" else STANDARD)

    def _read_widths(self, head: dict[str, Any]) -> dict[int, float]:
        get = self._document.get
        descriptor = get(head, "FontDescriptor", {})
        missing = get(descriptor, "MissingWidth", 0)
        self._missing = float(missing) if isinstance(missing, (int, float)) else 0.0
        scale = 1.0
        if get(head, "Subtype") == "Type3":
            matrix = get(head, "FontMatrix", [0.001])
            first = self._document.resolve(matrix[0]) if matrix else 0.001
            scale = abs(float(first)) * 1000 if isinstance(first, (int, float)) and first else 1.0
        widths = get(head, "Widths")
        if isinstance(widths, list):
            first = get(head, "FirstChar", 0)
            read = (self._document.resolve(width) for width in widths)
            return {
                first + at: float(width) * scale
                for at, width in enumerate(read)
                if isinstance(width, (int, float))
            }
        self._missing = self._missing or 500.0
        return standard_widths(str(get(head, "BaseFont", "")), self._codes)


class CompositeFont:
    """A Type 0 font, whose codes have one to four bytes."""

    def __init__(self, document: Document, head: dict[str, Any]) -> None:
        self._unicode = _to_unicode(document, head)
        descendants = document.get(head, "DescendantFonts") or [None]
        inner = document.resolve(descendants[0])
        self._inner = inner if isinstance(inner, dict) else {}
        encoding = document.get(head, "Encoding")
        name = str(encoding) if isinstance(encoding, Name) else ""
        self.vertical = name.endswith("-V")
        self._cmap = CMap(document.decoded(encoding)) if isinstance(encoding, Stream) else CMap()
        parts = name.split("-")
        self._codec = next((CMAP_CODECS[part] for part in parts if part in CMAP_CODECS), "")
        if name.startswith("Identity") or self._codec == "utf-16-be" or not self._codec:
            self._multibyte = False
        else:
            self._multibyte = True
        default = document.get(self._inner, "DW", 1000)
        self._default = float(default) if isinstance(default, (int, float)) else 1000.0
        self._widths = _cid_widths(document, document.get(self._inner, "W", []))

    def glyphs(self, data: bytes) -> list[Glyph]:
        if self._multibyte:
            return self._by_codec(data)
        return [self._glyph(code, length) for code, length in self._cmap.split(data)]

    def _glyph(self, code: int, length: int) -> Glyph:
        text = self._unicode.get(code)
        if text is None and self._codec:
            text = code.to_bytes(2, "big").decode(self._codec, "replace")
        cid = self._cmap.cids.get(code, 0 if self._cmap.cids else code)
        if text is None:
            text = UNKNOWN
        return Glyph(text, self._widths.get(cid, self._default), length == 1 and code == 32)

    def _by_codec(self, data: bytes) -> list[Glyph]:
        return [
            Glyph(character, self._default / 2 if ord(character) < 128 else self._default, False)
            for character in data.decode(self._codec, "replace")
        ]


def read_font(document: Document, head: Any) -> Font | CompositeFont:
    """Return the font of a resource. Missing and unknown data give a usable font, too.

    Raises `PdfError` if the map of its codes cannot be decoded.
    """
    head = document.resolve(head)
    head = head if isinstance(head, dict) else {}
    if document.get(head, "Subtype") == "Type0":
        return CompositeFont(document, head)
    return Font(document, head)


def _to_unicode(document: Document, head: dict[str, Any]) -> dict[int, str]:
    stream = document.get(head, "ToUnicode")
    if not isinstance(stream, Stream):
        return {}
    try:
        return CMap(document.decoded(stream)).unicode
    except PdfError:
        return {}


def _cid_widths(document: Document, given: Any) -> dict[int, float]:
    widths: dict[int, float] = {}
    items = [document.resolve(item) for item in given] if isinstance(given, list) else []
    at = 0
    while at + 1 < len(items):
        first, second = items[at], items[at + 1]
        if isinstance(second, list):
            for offset, width in enumerate(second):
                width = document.resolve(width)
                if isinstance(first, int) and isinstance(width, (int, float)):
                    widths[first + offset] = float(width)
            at += 2
            continue
        third = items[at + 2] if at + 2 < len(items) else None
        if isinstance(first, int) and isinstance(second, int) and isinstance(third, (int, float)):
            for cid in range(first, min(second, first + 65_535) + 1):
                widths[cid] = float(third)
        at += 3
    return widths
