"""Decode the filters of streams."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import Any

from pdf_reader.errors import PdfError, Unsupported

MAX_DECODED = 128 * 1024 * 1024
"""The maximum size of a decoded stream in bytes. A few kilobytes can expand to gigabytes."""


def decode(raw: bytes, filters: list[str], parameters: list[dict[str, Any]]) -> bytes:
    """Return `raw` after all `filters`.

    Raises `Unsupported` for pictures, `PdfError` for damage.
    """
    data = raw
    for name, given in zip(filters, parameters, strict=True):
        if name in ("FlateDecode", "Fl"):
            data = _unpredict(_inflate(data), given)
        elif name in ("LZWDecode", "LZW"):
            data = _unpredict(_lzw(data, _number(given, "EarlyChange", 1)), given)
        elif name in ("ASCII85Decode", "A85"):
            data = _ascii85(data)
        elif name in ("ASCIIHexDecode", "AHx"):
            digits = re.sub(rb"[^0-9A-Fa-f]", b"", data.partition(b">")[0])
            data = bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
        elif name in ("RunLengthDecode", "RL"):
            data = _run_length(data)
        else:
            raise Unsupported(f"The filter {name} contains no text.")
    return data


def _number(given: dict[str, Any], key: str, default: int) -> int:
    value = given.get(key, default)
    return value if isinstance(value, int) and 0 <= value < 1_000_000 else default


def _inflate(data: bytes) -> bytes:
    """Return `data` decompressed. If its end is damaged, return the part before."""
    inflater = zlib.decompressobj()
    parts: list[bytes] = []
    try:
        parts.append(inflater.decompress(data, MAX_DECODED))
    except zlib.error:
        parts = [_inflate_slowly(data)]
        if not parts[0]:
            raise PdfError("A compressed part of the file is damaged.") from None
    if inflater.unconsumed_tail:
        raise PdfError(f"A part of the file unpacks to more than {MAX_DECODED:,} bytes: refused.")
    return b"".join(parts)


def _inflate_slowly(data: bytes) -> bytes:
    for wbits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        inflater = zlib.decompressobj(wbits)
        start = 0 if wbits > 0 else 2
        parts: list[bytes] = []
        size = 0
        try:
            for at in range(start, len(data), 64):
                parts.append(inflater.decompress(data[at : at + 64]))
                size += len(parts[-1])
                if size > MAX_DECODED:
                    break
        except zlib.error:
            pass
        if size:
            return b"".join(parts)
    return b""


def _unpredict(data: bytes, given: dict[str, Any]) -> bytes:
    predictor = _number(given, "Predictor", 1)
    if predictor == 1:
        return data
    colors, bits = _number(given, "Colors", 1), _number(given, "BitsPerComponent", 8)
    width = max(1, (colors * bits * _number(given, "Columns", 1) + 7) // 8)
    step = max(1, colors * bits // 8)
    if predictor == 2:
        if bits != 8:
            raise Unsupported("TIFF prediction with other than 8 bits is not supported.")
        out = bytearray(data)
        for row in range(0, len(out), width):
            for at in range(row + step, min(row + width, len(out))):
                out[at] = (out[at] + out[at - step]) & 255
        return bytes(out)
    return _png_rows(data, width, step)


def _png_rows(data: bytes, width: int, step: int) -> bytes:
    rows: list[bytes] = []
    above = bytearray(width)
    for start in range(0, len(data), width + 1):
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + width])
        if kind == 1:
            for at in range(step, len(row)):
                row[at] = (row[at] + row[at - step]) & 255
        elif kind == 2:
            for at in range(len(row)):
                row[at] = (row[at] + above[at]) & 255
        elif kind in (3, 4):
            for at in range(len(row)):
                left = row[at - step] if at >= step else 0
                corner = above[at - step] if at >= step else 0
                guess = (left + above[at]) // 2 if kind == 3 else _paeth(left, above[at], corner)
                row[at] = (row[at] + guess) & 255
        rows.append(bytes(row))
        above = row + bytearray(width - len(row))
    return b"".join(rows)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    distances = abs(guess - left), abs(guess - up), abs(guess - corner)
    return (left, up, corner)[distances.index(min(distances))]


def _lzw(data: bytes, early: int) -> bytes:
    table = [bytes([code]) for code in range(256)] + [b"", b""]
    out: list[bytes] = []
    size = bits = held = 0
    width, before = 9, b""
    for byte in data:
        held, bits = (held << 8) | byte, bits + 8
        if bits < width:
            continue
        bits -= width
        code = held >> bits
        held &= (1 << bits) - 1
        if code == 256:
            del table[258:]
            width, before = 9, b""
            continue
        if code == 257:
            break
        if code < len(table):
            entry = table[code]
        elif code == len(table) and before:
            entry = before + before[:1]
        else:
            raise PdfError("An LZW-compressed part of the file is damaged.")
        out.append(entry)
        size += len(entry)
        if size > MAX_DECODED:
            raise PdfError(f"A part of the file unpacks to more than {MAX_DECODED:,} bytes.")
        if before and len(table) < 4096:
            table.append(before + entry[:1])
        before = entry
        width = min(12, max(9, (len(table) + early).bit_length()))
    return b"".join(out)


def _ascii85(data: bytes) -> bytes:
    text = re.sub(rb"[\x00\t\n\x0c\r ]", b"", data).removeprefix(b"<~").partition(b"~")[0]
    try:
        return base64.a85decode(text)
    except (ValueError, binascii.Error):
        raise PdfError("An ASCII85 part of the file is damaged.") from None


def _run_length(data: bytes) -> bytes:
    out = bytearray()
    at = 0
    while at < len(data) and data[at] != 128:
        length = data[at]
        if length < 128:
            out += data[at + 1 : at + 2 + length]
            at += length + 2
        else:
            out += data[at + 1 : at + 2] * (257 - length)
            at += 2
    return bytes(out)
