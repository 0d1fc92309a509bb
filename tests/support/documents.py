"""Documents for uploads, and the toolbox that reads them, built once for each test run."""

from __future__ import annotations

import io
import struct
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.conf import settings
from django.test import override_settings

from agents.documents.reader import PACKAGES
from sandbox.toolboxes.build import ToolboxRequest
from sandbox.toolboxes.find import find_toolbox
from tests.support.shared import alone, shared_directory
from tests.support.toolboxes import data_with

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
_TYPES = (
    f'<Types xmlns="{_PACKAGE}content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    f'<Relationships xmlns="{_PACKAGE}relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
import openpyxl, pptx, pypdf
book = openpyxl.Workbook()
book.active.title = "Prices"
book.active.append(["thing", "a|b"])
book.active.append(["tea", 3.5])
book.save(sys.argv[2] + "/prices.xlsx")
deck = pptx.Presentation()
slide = deck.slides.add_slide(deck.slide_layouts[0])
slide.shapes.title.text = "Quarter four"
slide.notes_slide.notes_text_frame.text = "Say it slowly"
deck.save(sys.argv[2] + "/deck.pptx")
from PIL import Image
Image.effect_noise((2400, 1200), 60).convert("RGB").save(
    sys.argv[2] + "/photo.png", compress_level=1
)
small = Image.new("RGB", (64, 48), "red")
exif = small.getexif()
exif[0x010E] = "where I live"
small.save(sys.argv[2] + "/small.jpg", exif=exif)
small.save(sys.argv[2] + "/small.webp")
small.save(sys.argv[2] + "/lossless.webp", lossless=True)
small.save(sys.argv[2] + "/small.gif")
locked = pypdf.PdfWriter()
locked.add_blank_page(200, 200)
locked.encrypt("secret", algorithm="RC4-128")
locked.write(sys.argv[2] + "/locked.pdf")
"""


def documents_data() -> Path:
    """Return a data directory with the toolbox of documents. Skip the test if the build fails."""
    return data_with(ToolboxRequest("documents", PACKAGES))


@contextmanager
def reading_documents(**vel: object) -> Iterator[Path]:
    """Yield settings under which Vel reads uploads."""
    data = documents_data()
    with override_settings(VEL={**settings.VEL, "DATA_DIR": data, **vel}):
        yield data


@cache
def samples() -> dict[str, bytes]:
    """Return real files, made once a run with the toolbox: documents and pictures."""
    data = documents_data()
    directory = shared_directory() / "samples"
    with alone("samples"):
        if not directory.exists():
            fresh = Path(tempfile.mkdtemp(dir=shared_directory()))
            toolbox = find_toolbox(data / "toolboxes", "documents")
            (packages,) = toolbox.environment.glob("lib/python3*/site-packages")
            subprocess.run(["/usr/bin/python3", "-c", _MAKE, packages, fresh], check=True)
            fresh.rename(directory)
    found = {path.name: path.read_bytes() for path in directory.iterdir()}
    return found | {
        "letter.docx": docx("Dear Ada", "tea < coffee"),
        "page.pdf": pdf("Hello page"),
        "bomb.png": png_bomb(),
    }


def docx(*paragraphs: str) -> bytes:
    escaped = [text.replace("&", "&amp;").replace("<", "&lt;") for text in paragraphs]
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in escaped)
    return docx_of(f'<w:document xmlns:w="{_W}"><w:body>{body}</w:body></w:document>')


def docx_of(document: str) -> bytes:
    """Return a docx with this XML as its document."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("word/document.xml", document)
    return stream.getvalue()


def zip_bomb(size: int = 201_000_000) -> bytes:
    """Return a docx that unpacks to `size` bytes. The reader accepts at most 200 million."""
    return docx_of(" " * size)


def laughing_docx() -> bytes:
    """Return a docx with entities that expand to ten billion letters."""
    entities = "".join(
        f'<!ENTITY a{n} "{(f"&a{n - 1};" if n else "lol") * 10}">' for n in range(10)
    )
    paragraph = "<w:p><w:r><w:t>&a9;</w:t></w:r></w:p>"
    return docx_of(
        f'<!DOCTYPE x [{entities}]><w:document xmlns:w="{_W}"><w:body>{paragraph}</w:body>'
        "</w:document>"
    )


def pdf(text: str) -> bytes:
    """Return a PDF of one page with `text`. With "" it has no text, like a scan."""
    content = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode() if text else b""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj%b endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + table
    return out + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start


def png(width: int = 8, height: int = 8, *, after: bytes = b"") -> bytes:
    """Return a black picture, with `after` behind its end."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return _png_of(header, zlib.compress((b"\0" + b"\0" * width) * height)) + after


def png_bomb(side: int = 40_000) -> bytes:
    """Return a valid black picture with one bit per pixel, which unpacks to 200 MB.

    All its bytes are zero, so the same compressed block is repeated. Compressing all of it would
    take seconds.
    """
    blocks = 100
    size = side * (1 + side // 8)
    assert (side % 8, size % blocks) == (0, 0)
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    block = compressor.compress(bytes(size // blocks)) + compressor.flush(zlib.Z_FULL_FLUSH)
    # The checksum (Adler-32) of `size` zeros.
    check = struct.pack(">I", size % 65_521 << 16 | 1)
    rows = b"\x78\x9c" + block * blocks + compressor.flush() + check
    return _png_of(struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0), rows)


def _png_of(header: bytes, rows: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    body = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
