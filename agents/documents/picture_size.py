"""The size of a picture, from its header only, without decoding."""

from __future__ import annotations

import struct

_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
WEBP_HEADER = 30
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})


def picture_size(data: bytes) -> tuple[str, int, int] | None:
    """Return (media type, width, height) of a PNG, JPEG, GIF or WebP. None for other data."""
    try:
        found = _read(data)
    except (struct.error, IndexError):
        return None
    return found if found is not None and found[1] > 0 and found[2] > 0 else None


def _read(data: bytes) -> tuple[str, int, int] | None:
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR":
        return ("image/png", *struct.unpack_from(">II", data, 16))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return ("image/gif", *struct.unpack_from("<HH", data, 6))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= WEBP_HEADER:
        return _webp(data)
    if data[:3] == b"\xff\xd8\xff":
        return _jpeg(data)
    return None


def _webp(data: bytes) -> tuple[str, int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        return "image/webp", width, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return "image/webp", width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[str, int, int] | None:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return "image/jpeg", width, height
        else:
            length = struct.unpack_from(">H", data, at + 2)[0]
            at += 2 + max(2, length)
    return None
