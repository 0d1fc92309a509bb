"""PDF files built from single objects, so that tests know their content."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

Objects = dict[int, bytes]
HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def stream(content: bytes, extra: bytes = b"", *, flate: bool = True) -> bytes:
    data = zlib.compress(content) if flate else content
    head = b"/Filter /FlateDecode " if flate else b""
    return b"<< %s%s/Length %d >>\nstream\n%s\nendstream" % (head, extra, len(data), data)


def assemble(objects: Objects, trailer: bytes = b"") -> bytes:
    """Return a file with a table of objects. Object 1 is the catalogue."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 n \n" % offsets[number]
    out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        trailer,
        start,
    )
    return bytes(out)


def document(
    contents: Sequence[bytes], extra: Objects | None = None, *, catalog: bytes = b"",
    page: bytes = b"", trailer: bytes = b"", fonts: bytes = b"/F1 3 0 R",
) -> Objects:  # fmt: skip
    """Return objects of a file with a page for each of `contents`: 1 catalogue, 2 pages, 3 font."""
    kids = b" ".join(b"%d 0 R" % (10 + 2 * at) for at in range(len(contents)))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        2: b"<< /Type /Pages /Kids [%s] /Count %d /MediaBox [0 0 595 842] "
        b"/Resources << /Font << %s >> >> >>" % (kids, len(contents), fonts),
        3: HELVETICA,
        4: b"<< /Title (Invoice 17) /Author <FEFF00C5006E006E> /Producer (by hand) >>",
    }
    for at, content in enumerate(contents):
        head = b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R %s >>" % (11 + 2 * at, page)
        objects |= {10 + 2 * at: head, 11 + 2 * at: stream(content)}
    objects |= extra or {}
    free = set(range(1, max(objects))) - set(objects)
    return objects | dict.fromkeys(free, b"null")


def plain_file(contents: Sequence[bytes], extra: Objects | None = None, **more: bytes) -> bytes:
    return assemble(document(contents, extra, **more), b"/Info 4 0 R")  # type: ignore[arg-type]


def packed_file(contents: Sequence[bytes]) -> bytes:
    """Return a file with a cross-reference stream, and its dictionaries in an object stream."""
    objects = document(contents)
    packed = {n: body for n, body in objects.items() if not body.rstrip().endswith(b"endstream")}
    plain = {n: body for n, body in objects.items() if n not in packed}
    holder, table = max(objects) + 1, max(objects) + 2
    directory, bodies = b"", b""
    for number, body in packed.items():
        directory += b"%d %d " % (number, len(bodies))
        bodies += body + b" "
    plain[holder] = stream(
        directory + bodies, b"/Type /ObjStm /N %d /First %d " % (len(packed), len(directory))
    )
    out, offsets = bytearray(b"%PDF-1.5\n"), {}
    for number, body in sorted(plain.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    rows = [b"\0" * 5]
    order = list(packed)
    for number in range(1, table + 1):
        if number in packed:
            rows.append(b"\2" + holder.to_bytes(3, "big") + bytes([order.index(number)]))
        else:
            rows.append(b"\1" + offsets.get(number, len(out)).to_bytes(3, "big") + b"\0")
    # With the usual predictor: each row minus the row above.
    coded, above = b"", bytes(5)
    for row in rows:
        coded += b"\2" + bytes((a - b) & 255 for a, b in zip(row, above, strict=True))
        above = row
    head = (
        b"/Type /XRef /W [1 3 1] /Size %d /Root 1 0 R /Info 4 0 R "
        b"/DecodeParms << /Predictor 12 /Columns 5 >> " % (table + 1)
    )
    start = len(out)
    out += b"%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n" % (table, stream(coded, head), start)
    return bytes(out)


def shown(*lines: tuple[float, float, str], size: int = 11) -> bytes:
    """Return the content of a page with texts at given positions."""
    parts = [b"BT /F1 %d Tf" % size]
    for x, y, text in lines:
        coded = text.encode("cp1252").replace(b"\\", b"\\\\")
        coded = coded.replace(b"(", b"\\(").replace(b")", b"\\)")
        parts.append(b"1 0 0 1 %g %g Tm (%s) Tj" % (x, y, coded))
    return b"\n".join([*parts, b"ET"])


def invoice() -> bytes:
    """Return two pages; the first has a table of three columns."""
    first = shown(
        (60, 780, "Invoice 17 – Müller & Söhne (paid)"),
        (60, 740, "Item"), (300, 740, "Quantity"), (420, 740, "Price"),
        (60, 720, "Copper wire, 2 mm"), (300, 720, "40"), (420, 720, "1,250.00 €"),
        (60, 700, "Clamps"), (300, 700, "200"), (420, 700, "36.50 €"),
        (60, 660, "Total: 1,286.50 €"),
    )  # fmt: skip
    return plain_file([first, shown((60, 780, "Terms of payment"), (60, 764, "Thirty days."))])


def form() -> bytes:
    """Return a form with all kinds of fields, nested names, and a page for most of the fields."""
    widgets = b"/Subtype /Widget /Rect [0 0 10 10]"
    extra = {
        30: b"<< /T (address) /Kids [31 0 R 32 0 R] >>",
        31: b"<< /T (street) /FT /Tx /V (12 High Street) /Parent 30 0 R /TU (Street) %s >>"
        % widgets,
        32: b"<< /T (city) /FT /Tx /V <FEFF004D00FC006E006300680065006E> /Parent 30 0 R %s >>"
        % widgets,
        33: b"<< /T (agree) /FT /Btn /V /Yes /AS /Yes "
        b"/AP << /N << /Yes 3 0 R /Off 3 0 R >> >> %s >>" % widgets,
        34: b"<< /T (newsletter) /FT /Btn /V /Off %s >>" % widgets,
        35: b"<< /T (size) /FT /Btn /Ff 32768 /V /Large /Kids [36 0 R 37 0 R] >>",
        36: b"<< /Parent 35 0 R /AP << /N << /Small 3 0 R /Off 3 0 R >> >> %s >>" % widgets,
        37: b"<< /Parent 35 0 R /AP << /N << /Large 3 0 R /Off 3 0 R >> >> %s >>" % widgets,
        38: b"<< /T (country) /FT /Ch /Ff 131072 /V (DE) /Opt [[(DE) (Germany)] [(FR) (France)]] "
        b"%s >>" % widgets,
        39: b"<< /T (days) /FT /Ch /V [(Mon) (Fri)] /Opt [(Mon) (Tue) (Fri)] %s >>" % widgets,
        40: b"<< /T (remarks) /FT /Tx /Ff 2 %s >>" % widgets,
        41: b"<< /T (signed) /FT /Sig /V << /Type /Sig >> %s >>" % widgets,
    }
    fields = b" ".join(b"%d 0 R" % each for each in (30, 33, 34, 35, 38, 39, 40, 41))
    annotations = b" ".join(b"%d 0 R" % each for each in (31, 32, 33, 34, 36, 37, 38, 39, 40))
    return plain_file(
        [shown((60, 780, "Application"))],
        extra,
        catalog=b"/AcroForm << /Fields [%s] >>" % fields,
        page=b"/Annots [%s]" % annotations,
    )
