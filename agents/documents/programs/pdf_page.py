"""Read a PDF from standard input and write a page as base64 PNG. Runs in a sandbox only.

The first line of the output has the number of pages. With the first page, it also has a width and
a height in pixels for each page. The line is written before the page is rendered: pages of a
document with one bad page stay readable. Scripts and actions of the document are not executed:
the library is built without an interpreter. Exit codes: 3 damaged, 4 a password is needed, 7 the
page is damaged.
"""

import base64
import importlib
import io
import math
import os
import sys

SIDE, ZOOM = int(os.environ["VEL_SIDE"]), int(os.environ["VEL_ZOOM"])
BYTES, PAGES = int(os.environ["VEL_BYTES"]), int(os.environ["VEL_PAGES"])
NUMBER = int(os.environ["VEL_PAGE"])
DAMAGED, LOCKED, BAD_PAGE = 3, 4, 7
LETTER = (612, 792)
PASSWORD_ERRORS = (4, 5)  # FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY


def main():
    pdfium = importlib.import_module("pypdfium2")
    try:
        document = pdfium.PdfDocument(sys.stdin.buffer.read())
    except pdfium.PdfiumError as error:
        print(error, file=sys.stderr)
        return LOCKED if error.err_code in PASSWORD_ERRORS else DAMAGED
    count = len(document)
    if not count:
        return DAMAGED
    words = [count]
    if NUMBER == 1:
        for index in range(min(count, PAGES)):
            words += pixels(*size_of(document, index, pdfium))
    print(*words, flush=True)
    if count < NUMBER:
        return BAD_PAGE
    try:
        document.init_forms()  # without it, filled-in fields of forms are not drawn
        page = document[NUMBER - 1]
        width, height = page.get_size()
        picture = page.render(scale=scale_of(width, height)).to_pil()
    except pdfium.PdfiumError as error:
        print(error, file=sys.stderr)
        return BAD_PAGE
    while len(data := saved(picture)) > BYTES:
        picture.thumbnail((picture.width * 3 // 4, picture.height * 3 // 4))
    sys.stdout.write(base64.b64encode(data).decode())
    return 0


def size_of(document, index, pdfium):
    """Return the size of a page in points, or a common one if the page is damaged."""
    try:
        return document.get_page_size(index)
    except pdfium.PdfiumError:
        return LETTER


def scale_of(width, height):
    return min(SIDE / max(width, height, 1), ZOOM)


def pixels(width, height):
    scale = scale_of(width, height)
    return [max(1, math.ceil(side * scale)) for side in (width, height)]


def saved(picture):
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


if __name__ == "__main__":
    sys.exit(main())
