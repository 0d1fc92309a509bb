"""Read a picture from standard input and write a small one as base64. Runs in a sandbox only.

The result contains only pixels: no metadata, no frames after the first, no trailing bytes. Exit
code 3: damaged or too large.
"""

import base64
import importlib
import io
import os
import sys
import warnings
from typing import Any

Image: Any = importlib.import_module("PIL.Image")
ImageOps = importlib.import_module("PIL.ImageOps")

SIDE, BYTES = int(os.environ["VEL_SIDE"]), int(os.environ["VEL_BYTES"])
PIXELS, ONLY = int(os.environ["VEL_PIXELS"]), os.environ["VEL_ONLY"]
DAMAGED = 3


def main():
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = PIXELS
    try:
        given = Image.open(
            io.BytesIO(sys.stdin.buffer.read()), formats=("PNG", "JPEG", "GIF", "WEBP")
        )
        given.draft("RGB", (SIDE, SIDE))
        picture = ImageOps.exif_transpose(given)
        clear = picture.has_transparency_data
        picture = picture.convert("RGBA" if clear else "RGB")
    except Exception as error:  # noqa: BLE001  # caused by a malicious file
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return DAMAGED
    lossless = given.format in ("PNG", "GIF")
    side = SIDE
    while True:
        picture.thumbnail((side, side))
        for data in encoded(picture, lossless):
            if len(data) <= BYTES:
                sys.stdout.write(base64.b64encode(data).decode())
                return 0
        side = side * 3 // 4


def encoded(picture, lossless):
    """Yield the picture in decreasing sizes. Drawings and screenshots are lossless if possible."""
    if ONLY == "PNG":
        yield saved(picture, "PNG")
        return
    if lossless:
        yield saved(picture, "PNG", optimize=True)
    if picture.mode == "RGBA":
        white = Image.new("RGBA", picture.size, "white")
        white.alpha_composite(picture)
        picture = white.convert("RGB")
    for quality in (88, 75, 60):
        yield saved(picture, "JPEG", quality=quality)


def saved(picture, kind, **options):
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


if __name__ == "__main__":
    sys.exit(main())
