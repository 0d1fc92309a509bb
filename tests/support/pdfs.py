"""PDF files for tests: usual ones and malicious ones."""

from __future__ import annotations

import zlib

_A4 = b"[0 0 595 842]"


def pdf_of(*objects: bytes, trailer: bytes = b"") -> bytes:
    """Return a PDF of these objects, numbered from 1. The first one is the catalog."""
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer<</Size %d/Root 1 0 R%b>>\n" % (len(objects) + 1, trailer)
    return bytes(out) + head + table + tail + b"startxref\n%d\n%%%%EOF\n" % len(out)


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%b>>stream\n%b\nendstream" % (len(data), entries, data)


def pages_pdf(count: int, *, box: bytes = _A4, catalog: bytes = b"") -> bytes:
    """Return a PDF with `count` pages with a blue square and their number."""
    first = 4
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(count))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%b>>" % catalog,
        b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, count),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number in range(count):
        content = first + 2 * number + 1
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox%b/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R>>>>>>" % (box, content)
        )
        text = b"BT /F1 48 Tf 60 700 Td (Chapter %d) Tj ET" % (number + 1)
        objects.append(stream(b"0 0 1 rg 60 400 200 200 re f 0 g " + text))
    return pdf_of(*objects)


def repeated_page_pdf(count: int) -> bytes:
    """Return a PDF whose tree of pages has the same page `count` times."""
    return pdf_of(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%b]/Count %d>>" % (b"3 0 R " * count, count),
        b"<</Type/Page/Parent 2 0 R/MediaBox%b>>" % _A4,
    )


def content_pdf(content: bytes, *others: bytes, resources: bytes = b"") -> bytes:
    """Return a PDF of one page. `content` is object 4, `others` are those from 5."""
    return pdf_of(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox%b/Contents 4 0 R/Resources<<%b>>>>" % (_A4, resources),
        content,
        *others,
    )


def slow_pdf() -> bytes:
    """Return a small PDF that takes minutes and little memory: a long program for each pixel."""
    program = b"{" + b"dup pop " * 50_000 + b"0}"
    function = stream(program, b"/FunctionType 4/Domain[0 1 0 1]/Range[0 1 0 1 0 1]")
    shading = (
        b"<</ShadingType 1/ColorSpace/DeviceRGB/Domain[0 1 0 1]/Matrix[595 0 0 842 0 0]"
        b"/Function 6 0 R>>"
    )
    return content_pdf(stream(b"/S sh"), shading, function, resources=b"/Shading<</S 5 0 R>>")


def nested_forms_pdf() -> bytes:
    """Return a PDF whose forms draw forms, ten times each and nine deep: a billion squares."""
    forms = []
    for number in range(6, 15):
        below = b"/Resources<</XObject<</X %d 0 R>>>>" % number
        head = b"/Type/XObject/Subtype/Form/BBox[0 0 500 500]" + below
        forms.append(stream(b"/X Do " * 10, head))
    square = stream(b"0 0 500 500 re f", b"/Type/XObject/Subtype/Form/BBox[0 0 500 500]")
    return content_pdf(stream(b"/X Do"), *forms, square, resources=b"/XObject<</X 5 0 R>>")


def unpacking_pdf(size: int = 4_000_000_000) -> bytes:
    """Return a PDF whose content unpacks to `size` bytes, in two steps."""
    # All bytes are equal, so the same compressed block is repeated.
    block = 4_000_000
    compressor = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = compressor.compress(b" " * block) + compressor.flush(zlib.Z_FULL_FLUSH)
    once = b"\x78\x9c" + packed * (size // block) + compressor.flush()
    return content_pdf(stream(zlib.compress(once), b"/Filter[/FlateDecode/FlateDecode]"))


def picture_bomb_pdf(side: int = 60_000) -> bytes:
    """Return a PDF with a picture of `side` times `side` pixels."""
    picture = stream(
        zlib.compress(bytes(10_000_000), 9),
        b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB"
        b"/BitsPerComponent 8/Filter/FlateDecode" % (side, side),
    )
    return content_pdf(
        stream(b"500 0 0 500 0 0 cm /X Do"), picture, resources=b"/XObject<</X 5 0 R>>"
    )


def nested_pdf(depth: int = 1_000_000) -> bytes:
    """Return a PDF with arrays in arrays in its content, and in an object."""
    return content_pdf(stream(b"[" * depth), b"[" * depth + b"]" * depth, resources=b"/X 5 0 R")


def deep_tree_pdf(depth: int = 50_000) -> bytes:
    """Return a PDF whose only page is below `depth` nodes of the tree of pages."""
    nodes = [
        b"<</Type/Pages/Kids[%d 0 R]/Count 1/Parent %d 0 R>>" % (number + 1, number - 1)
        for number in range(2, depth + 2)
    ]
    page = b"<</Type/Page/Parent %d 0 R/MediaBox%b>>" % (depth + 1, _A4)
    return pdf_of(b"<</Type/Catalog/Pages 2 0 R>>", *nodes, page)


def loop_tree_pdf() -> bytes:
    """Return a PDF whose tree of pages contains itself."""
    return pdf_of(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>")


def active_pdf() -> bytes:
    """Return a PDF that runs scripts and programs when it is opened, and when its page is shown."""
    script = b"<</S/JavaScript/JS(app.alert\\('x'\\); this.submitForm\\('http://127.0.0.1/'\\))>>"
    launch = b"<</S/Launch/F(/bin/sh)/Win<</F(calc.exe)>>>>"
    names = b"/Names<</JavaScript<</Names[(a) %b]>>>>" % script
    return pages_pdf(1, catalog=b"/OpenAction %b/AA<</WC %b>>%b" % (launch, script, names))
