"""PNG pictures encoded again from their pixels, so that browsers get no part of the original file.

A picture from an agent can contain other data after, between and inside its chunks. This module
keeps only the header, the palette, the transparent color and the pixels. It checks them in a
memory-safe language and writes them again.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence

MAX_BYTES = 20_000_000
"""The maximum size of the input."""
MAX_RAW_BYTES = 64_000_000
"""The maximum size of the pixels."""
MAX_SIDE = 10_000
MAX_MADE_BYTES = 30_000_000
"""The maximum size of the output. Vel may compress less well than the original program."""
MAX_CHUNKS = 50_000
"""Programs write 8 kB or more of pixels into each chunk."""
_STEP_BYTES = 64 * 1024
"""Size of the parts of compressed data and of pixels."""

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
    """The file is not a PNG, or it is damaged or too large."""


def remade_png(data: bytes) -> bytes:
    """Return the same pixels in a new file. Raises `NotAPicture`."""
    if len(data) > MAX_BYTES:
        raise NotAPicture("The file is too large to be shown.")
    chunks, packed = _chunks(data)
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
    expected = sum(size * count for size, count in rows)
    if expected > MAX_RAW_BYTES:
        raise NotAPicture("It has too many pixels to be shown.")
    made = io.BytesIO()
    made.write(_SIGNATURE)
    made.write(_chunk(b"IHDR", header))
    palette = chunks.get(b"PLTE", b"")
    if colour == 3:
        if not palette or len(palette) % 3 or len(palette) // 3 > 2**depth:
            raise NotAPicture("Its palette is broken.")
        made.write(_chunk(b"PLTE", palette))
    clear = chunks.get(b"tRNS", b"")
    if clear and _fits(clear, colour, len(palette) // 3):
        made.write(_chunk(b"tRNS", clear))
    _pack(_checked(_unpacked(data, packed, expected), rows), made)
    made.write(_chunk(b"IEND", b""))
    return made.getvalue()


def _chunks(data: bytes) -> tuple[dict[bytes, bytes], list[tuple[int, int]]]:
    """Return the chunks to keep, and the start and end of each chunk of pixels."""
    if not data.startswith(_SIGNATURE):
        raise NotAPicture("It is no PNG picture.")
    found: dict[bytes, bytes] = {}
    pixels: list[tuple[int, int]] = []
    place = len(_SIGNATURE)
    for _ in range(MAX_CHUNKS):
        if place + 12 > len(data):
            break
        size, kind = struct.unpack_from(">I4s", data, place)
        end = place + 8 + size
        if end + 4 > len(data) or kind == b"IEND":
            break
        if kind == b"IDAT":
            pixels.append((place + 8, end))
        elif kind in (b"IHDR", b"PLTE", b"tRNS"):
            if kind in found:
                raise NotAPicture("A part of it is there twice.")
            found[kind] = data[place + 8 : end]
        place = end + 4
    else:
        raise NotAPicture(f"It has more than {MAX_CHUNKS:,} parts.")
    if b"IHDR" not in found or not pixels:
        raise NotAPicture("A part of it is missing.")
    return found, pixels


def _rows(width: int, height: int, bits: int, interlace: int) -> list[tuple[int, int]]:
    """Return (bytes of a row with its filter, number of rows) of each pass."""
    if not interlace:
        return [((width * bits + 7) // 8 + 1, height)]
    found = []
    for left, top, across, down in _PASSES:
        columns, lines = -(-(width - left) // across), -(-(height - top) // down)
        if columns > 0 and lines > 0:
            found.append(((columns * bits + 7) // 8 + 1, lines))
    return found


def _unpacked(data: bytes, places: Sequence[tuple[int, int]], expected: int) -> Iterator[bytes]:
    """Yield the first `expected` bytes of the pixels, in small parts."""
    unpacker = zlib.decompressobj()
    left = expected
    try:
        for packed in _slices(data, places):
            while packed and left and not unpacker.eof:
                raw = unpacker.decompress(packed, min(_STEP_BYTES, left))
                packed = unpacker.unconsumed_tail
                left -= len(raw)
                yield raw
    except zlib.error:
        raise NotAPicture("Its pixels are broken.") from None
    if left:
        raise NotAPicture("Some of its pixels are missing.")


def _slices(data: bytes, places: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the data at the places in small parts: the decompressor copies unused input."""
    for begin, end in places:
        for start in range(begin, end, _STEP_BYTES):
            yield data[start : min(start + _STEP_BYTES, end)]


def _checked(raw: Iterator[bytes], rows: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the same parts. Raises `NotAPicture` if a row starts with an unknown filter."""
    passes = iter(rows)
    size, count = next(passes)
    skipped = 0  # bytes before the next row
    for piece in raw:
        while skipped < len(piece):
            begun = min(count, -((skipped - len(piece)) // size))
            if max(piece[skipped : skipped + begun * size : size]) > 4:
                raise NotAPicture("Its pixels are broken.")
            skipped += begun * size
            count -= begun
            if not count:
                size, count = next(passes, (1, 0))
        skipped -= len(piece)
        yield piece


def _pack(raw: Iterator[bytes], made: io.BytesIO) -> None:
    """Add one chunk with all pixels. Its size is written at the end."""
    begin = made.tell()
    made.write(_chunk(b"IDAT", b"")[:8])
    check = zlib.crc32(b"IDAT")
    for data in _packed(raw):
        made.write(data)
        check = zlib.crc32(data, check)
        if made.tell() > MAX_MADE_BYTES:
            raise NotAPicture(f"Its pixels take more than {MAX_MADE_BYTES:,} bytes.")
    size = made.tell() - begin - 8
    made.write(struct.pack(">I", check))
    made.seek(begin)
    made.write(struct.pack(">I", size))
    made.seek(0, io.SEEK_END)


def _packed(raw: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1)
    for piece in raw:
        yield packer.compress(piece)
    yield packer.flush()


def _fits(clear: bytes, colour: int, colours: int) -> bool:
    return {0: len(clear) == 2, 2: len(clear) == 6, 3: 0 < len(clear) <= colours}.get(colour, False)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
