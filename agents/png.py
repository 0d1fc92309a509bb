"""PNG pictures made anew from their pixels, so that a browser gets nothing of the file itself.

A picture of an agent's may hold whatever the agent likes behind, between and inside its chunks.
Only the header, the palette, which colour is clear, and the pixels are kept; all of them are
checked here, in a language without pointers, and written again.
"""

from __future__ import annotations

import struct
import zlib

MAX_BYTES = 20_000_000
"""The largest file that is looked at."""
MAX_RAW_BYTES = 64_000_000
"""The most that its pixels may come to."""
MAX_SIDE = 10_000

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)


class NotAPicture(ValueError):
    """It is no PNG, or one that is broken or too large."""


def remade_png(data: bytes) -> bytes:
    """The same pixels in a new file. Raises `NotAPicture`."""
    if len(data) > MAX_BYTES:
        raise NotAPicture("The file is too large to be shown.")
    chunks = _chunks(data)
    header = chunks[b"IHDR"]
    if len(header) != 13:
        raise NotAPicture("Its header is broken.")
    width, height, depth, colour, compression, filtering, interlace = struct.unpack(
        ">IIBBBBB", header
    )
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise NotAPicture("Its sides are too long.")
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlace > 1:
        raise NotAPicture("Its header is not one that PNG knows.")
    rows = _rows(width, height, depth * _CHANNELS[colour], interlace)
    raw = _pixels(chunks[b"IDAT"], rows)
    made = [_SIGNATURE, _chunk(b"IHDR", header)]
    palette = chunks.get(b"PLTE", b"")
    if colour == 3:
        if not palette or len(palette) % 3 or len(palette) // 3 > 2**depth:
            raise NotAPicture("Its palette is broken.")
        made.append(_chunk(b"PLTE", palette))
    clear = chunks.get(b"tRNS", b"")
    if clear and _fits(clear, colour, len(palette) // 3):
        made.append(_chunk(b"tRNS", clear))
    return b"".join([*made, _chunk(b"IDAT", zlib.compress(raw, 1)), _chunk(b"IEND", b"")])


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """The chunks that count, those of the pixels joined."""
    if not data.startswith(_SIGNATURE):
        raise NotAPicture("It is no PNG picture.")
    found: dict[bytes, list[bytes]] = {}
    place = len(_SIGNATURE)
    while place + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        end = place + 8 + size
        if end + 4 > len(data):
            break
        if kind in (b"IHDR", b"PLTE", b"tRNS", b"IDAT"):
            found.setdefault(kind, []).append(data[place + 8 : end])
        if kind == b"IEND":
            break
        place = end + 4
    if b"IHDR" not in found or b"IDAT" not in found:
        raise NotAPicture("A part of it is missing.")
    if any(len(parts) > 1 for kind, parts in found.items() if kind != b"IDAT"):
        raise NotAPicture("A part of it is there twice.")
    return {kind: b"".join(parts) for kind, parts in found.items()}


def _rows(width: int, height: int, bits: int, interlace: int) -> list[tuple[int, int]]:
    """(bytes of a row with its filter, rows), of each pass."""
    if not interlace:
        return [((width * bits + 7) // 8 + 1, height)]
    found = []
    for left, top, across, down in _PASSES:
        columns, lines = -(-(width - left) // across), -(-(height - top) // down)
        if columns > 0 and lines > 0:
            found.append(((columns * bits + 7) // 8 + 1, lines))
    return found


def _pixels(packed: bytes, rows: list[tuple[int, int]]) -> bytes:
    expected = sum(size * count for size, count in rows)
    if expected > MAX_RAW_BYTES:
        raise NotAPicture("It has too many pixels to be shown.")
    try:
        raw = zlib.decompressobj().decompress(packed, expected)
    except zlib.error:
        raise NotAPicture("Its pixels are broken.") from None
    if len(raw) != expected:
        raise NotAPicture("Some of its pixels are missing.")
    place = 0
    for size, count in rows:
        if max(raw[place : place + size * count : size]) > 4:
            raise NotAPicture("Its pixels are broken.")
        place += size * count
    return raw


def _fits(clear: bytes, colour: int, colours: int) -> bool:
    return {0: len(clear) == 2, 2: len(clear) == 6, 3: 0 < len(clear) <= colours}.get(colour, False)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
