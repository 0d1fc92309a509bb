"""Read CMaps, which map the bytes of a string to codes, and codes to characters."""

from __future__ import annotations

from typing import Any

from pdf_reader.encodings import spread
from pdf_reader.syntax import END, Operator, Parser

MAX_MAPPED = 200_000
"""The maximum number of codes in a map. A range of a few bytes can name four thousand million."""


class CMap:
    """A character map of a PDF font.

    `unicode` maps a code to its text, and `cids` a code to its glyph number. `spaces` are the
    ranges of valid codes as (number of bytes, lowest, highest), and `lengths` these numbers of
    bytes. Damaged data is skipped, and reading stops at `MAX_MAPPED` codes. Raises `PdfError` if
    objects are nested too deeply.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.unicode: dict[int, str] = {}
        self.cids: dict[int, int] = {}
        self.spaces: list[tuple[int, int, int]] = []
        self._read(data)

    @property
    def lengths(self) -> list[int]:
        return sorted({length for length, _, _ in self.spaces})

    def split(self, data: bytes) -> list[tuple[int, int]]:
        """Return (code, number of bytes) of each character in a string.

        The code space ranges determine the lengths. Without ranges, each code has 2 bytes.
        """
        if not self.spaces:
            return [
                (int.from_bytes(data[at : at + 2], "big"), 2) for at in range(0, len(data) - 1, 2)
            ]
        codes, at = [], 0
        while at < len(data):
            for length in self.lengths:
                code = int.from_bytes(data[at : at + length], "big")
                if at + length <= len(data) and any(
                    length == size and low <= code <= high for size, low, high in self.spaces
                ):
                    break
            else:
                length = self.lengths[0]
                code = int.from_bytes(data[at : at + length], "big")
            codes.append((code, length))
            at += length
        return codes

    def _read(self, data: bytes) -> None:
        parser = Parser(data, references=False)
        operands: list[Any] = []
        while (item := parser.next()) is not END:
            if not isinstance(item, Operator):
                operands.append(item)
                continue
            if item == "endcodespacerange":
                self._codespace(operands)
            elif item == "endbfchar":
                for code, text in zip(operands[::2], operands[1::2], strict=False):
                    self._map(_code(code), text)
            elif item == "endbfrange":
                for low, high, first in _threes(operands):
                    self._range(_code(low), _code(high), first)
            elif item == "endcidchar":
                for code, cid in zip(operands[::2], operands[1::2], strict=False):
                    self.cids[_code(code)] = cid if isinstance(cid, int) else 0
            elif item == "endcidrange":
                for low, high, first in _threes(operands):
                    if isinstance(first, int):
                        for at in range(min(_code(high) - _code(low) + 1, MAX_MAPPED)):
                            self.cids[_code(low) + at] = first + at
            operands = []
            if len(self.unicode) + len(self.cids) > MAX_MAPPED:
                return

    def _codespace(self, operands: list[Any]) -> None:
        for low, high in zip(operands[::2], operands[1::2], strict=False):
            if isinstance(low, bytes) and isinstance(high, bytes) and 1 <= len(low) <= 4:
                self.spaces.append((len(low), _code(low), _code(high)))

    def _range(self, low: int, high: int, first: Any) -> None:
        if isinstance(first, list):
            for at, text in enumerate(first[: high - low + 1]):
                self._map(low + at, text)
        elif isinstance(first, bytes) and first:
            # Within a range, only the last character increases.
            start = first.decode("utf-16-be", "replace")
            for at in range(min(high - low + 1, MAX_MAPPED)):
                point = ord(start[-1]) + at
                if point < 0x110000 and not 0xD800 <= point < 0xE000:
                    self.unicode[low + at] = spread(start[:-1] + chr(point))

    def _map(self, code: int, text: Any) -> None:
        if isinstance(text, bytes):
            text = text.decode("utf-16-be", "replace") if len(text) > 1 else text.decode("latin-1")
            self.unicode[code] = spread(text)


def _code(item: Any) -> int:
    return int.from_bytes(item, "big") if isinstance(item, bytes) else 0


def _threes(operands: list[Any]) -> list[tuple[Any, Any, Any]]:
    return list(zip(operands[::3], operands[1::3], operands[2::3], strict=False))
