"""Valid and invalid PNG files."""

from __future__ import annotations

import struct
import zlib


def chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check


def png(
    width: int = 4,
    height: int = 3,
    *,
    colour: int = 2,
    depth: int = 8,
    interlace: int = 0,
    raw: bytes | None = None,
    before: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """Return a picture; `before` and `after` are chunks, or any bytes, around its pixels."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = (width * channels * depth + 7) // 8 + 1
    if raw is None:
        raw = (b"\0" + b"\x40" * (row - 1)) * height
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + before
        + chunk(b"IDAT", zlib.compress(raw))
        + after
        + chunk(b"IEND", b"")
    )
