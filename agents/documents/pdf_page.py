"""The output of `programs/pdf_page.py`: one page of a PDF as a picture.

The program has read an untrusted file, so nothing in its output is trusted.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

PAGE_SIDE = 1600
"""The longer side of a picture, in pixels."""
PAGE_ZOOM = 4
"""Pixels for a point (1/72 inch), at most: small pages give small pictures."""
MOST_PAGES = 500
"""Only the first pages of a document are rendered."""
_DIGITS = 7


@dataclass(frozen=True, slots=True)
class PdfPage:
    """A page of a PDF with `count` pages.

    `picture` is a PNG, or the reason why there is none. `sizes`, only with the first page, are the
    width and height in pixels of the pictures of the first `MOST_PAGES` pages.
    """

    count: int
    sizes: tuple[tuple[int, int], ...]
    picture: bytes | str


def parse_page(output: str, problem: str) -> PdfPage | str:
    """Return the page in the output, or the reason why there is none.

    The first line has the number of pages, and with the first page a width and a height for each
    page. The second line has the picture. `problem` is the reason why the program failed, or "".
    It can have failed after the first line: then the document has pages, but this one no picture.
    """
    head, end, rest = output.partition("\n")
    words = head.split(" ")
    if not end or not all(word.isascii() and word.isdecimal() for word in words):
        return problem or "it could not be read"
    if any(len(word) > _DIGITS for word in words):
        return problem or "it could not be read"
    count, *numbers = map(int, words)
    sides = [min(max(number, 1), PAGE_SIDE) for number in numbers[: 2 * MOST_PAGES]]
    sizes = tuple(zip(sides[::2], sides[1::2], strict=False))
    if problem:
        return PdfPage(count, sizes, problem)
    try:
        return PdfPage(count, sizes, base64.b64decode(rest, validate=True))
    except binascii.Error:
        return PdfPage(count, sizes, "it could not be read")
