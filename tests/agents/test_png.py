"""Pictures are written again with only the pixels of the file."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import pytest

from agents.png import MAX_BYTES, MAX_CHUNKS, NotAPicture, remade_png
from tests.support.pictures import chunk, png

SCRIPT = b"<script>alert(1)</script>"


def chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    place, found = 8, []
    while place < len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        found.append((kind, data[place + 8 : place + 8 + size]))
        place += 12 + size
    return found


@pytest.mark.parametrize(("colour", "depth"), [(0, 1), (0, 16), (2, 8), (4, 8), (6, 16)])
@pytest.mark.parametrize("interlace", [0])
def test_the_pixels_stay(colour: int, depth: int, interlace: int) -> None:
    data = png(7, 5, colour=colour, depth=depth, interlace=interlace)
    made = dict(chunks(remade_png(data)))
    given = dict(chunks(data))
    assert made[b"IHDR"] == given[b"IHDR"]
    assert zlib.decompress(made[b"IDAT"]) == zlib.decompress(given[b"IDAT"])


def test_passes_and_palettes_stay() -> None:
    raw = b"".join(
        (b"\0" + b"\1" * columns) * rows
        for columns, rows in ((1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4))
    )
    assert (
        zlib.decompress(
            dict(chunks(remade_png(png(8, 8, colour=0, interlace=1, raw=raw))))[b"IDAT"]
        )
        == raw
    )
    palette = chunk(b"PLTE", b"\1\2\3" * 4) + chunk(b"tRNS", b"\0\xff")
    kinds = [kind for kind, _ in chunks(remade_png(png(4, 4, colour=3, depth=2, before=palette)))]
    assert kinds == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]


def test_all_other_data_of_a_file_is_removed() -> None:
    text = chunk(b"tEXt", b"Comment\0" + SCRIPT) + chunk(b"eXIf", SCRIPT) + chunk(b"iCCP", SCRIPT)
    data = png(before=text, after=text) + SCRIPT
    made = remade_png(data)
    assert SCRIPT not in made
    assert [kind for kind, _ in chunks(made)] == [b"IHDR", b"IDAT", b"IEND"]


def bomb() -> bytes:
    return png(9_000, 9_000, colour=6, depth=16, raw=b"\0" * 1000)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a" + b"\0" * 50,
        b"\x89PNG\r\n\x1a\n",
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>',
        png()[:40],
        png(raw=b"\0" * 5),
        png(raw=b"\7" * 39),
        png(colour=3),
        png(before=chunk(b"IHDR", b"x" * 13)),
        png().replace(b"IDAT", b"iDAT"),
        png(20_000, 1),
        png(before=chunk(b"tEXt", b"") * MAX_CHUNKS),
        png(before=chunk(b"IDAT", b"") * MAX_CHUNKS),
        bomb(),
        b"\0" * (MAX_BYTES + 1),
    ],
    ids=lambda data: f"{len(data)}:{data[:20]!r}",
)
def test_a_file_that_is_not_a_picture_is_refused(data: bytes) -> None:
    with pytest.raises(NotAPicture):
        remade_png(data)


@pytest.mark.slow
def test_a_file_that_unpacks_to_more_than_stated_is_cut() -> None:
    more = png(4, 3, raw=(b"\0" + b"\x40" * 12) * 3 + b"\0" * 50_000_000)
    assert len(zlib.decompress(dict(chunks(remade_png(more)))[b"IDAT"])) == 39


def test_a_picture_of_too_many_pixels_is_not_unpacked() -> None:
    with pytest.raises(NotAPicture, match="too many pixels"):
        remade_png(bomb())


def test_pixels_are_never_in_memory_together() -> None:
    data = png(2_000, 2_000, colour=6, depth=8, raw=(b"\0" + b"\0" * 8_000) * 2_000)
    tracemalloc.start()
    try:
        made = remade_png(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000
    assert made[:33] == data[:33]


@pytest.mark.parametrize("interlace", [0, 1])
def test_a_wrong_filter_of_any_row_is_found(interlace: int) -> None:
    passes = [(400, 300)]
    if interlace:
        passes = [(50, 38), (50, 38), (100, 37), (100, 75), (200, 75), (200, 150), (400, 150)]
    rows = [b"\0" + b"\1" * columns for columns, lines in passes for _ in range(lines)]
    good = png(400, 300, colour=0, depth=8, interlace=interlace, raw=b"".join(rows))
    assert remade_png(good)
    for place in (0, len(rows) // 3, len(rows) // 2, len(rows) - 1):
        wrong = [*rows]
        wrong[place] = b"\5" + wrong[place][1:]
        with pytest.raises(NotAPicture, match="broken"):
            remade_png(png(400, 300, colour=0, depth=8, interlace=interlace, raw=b"".join(wrong)))
