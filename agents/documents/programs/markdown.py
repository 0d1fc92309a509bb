"""Read a document from standard input and write it as Markdown. Runs in a sandbox only.

VEL_READER is the name of the reader. Exit codes: 3 damaged, 4 password required, 5 no text, 6 too
large when unpacked.
"""

import importlib
import io
import os
import sys
import warnings
import zipfile

LIMIT = int(os.environ["VEL_LIMIT"])
"""Maximum characters of Markdown."""
ROWS, COLUMNS, PAGES = 20_000, 200, 2_000
UNPACKED_BYTES = 200_000_000
DAMAGED, LOCKED, EMPTY, TOO_LARGE = 3, 4, 5, 6


class Locked(Exception):
    pass


class Enough(Exception):
    pass


class TooLarge(Exception):
    pass


class Output:
    """Collects text up to the limit. At the limit it adds a note and raises `Enough`."""

    def __init__(self):
        self.parts, self.left, self.has_text = [], LIMIT, False

    def add(self, text, heading=False):
        text = text.replace("\x00", "")
        self.has_text = self.has_text or (not heading and bool(text.strip()))
        self.parts.append(text[: self.left])
        self.left -= len(text)
        if self.left < 0:
            self.parts.append("\n\n[The rest is left out.]\n")
            raise Enough


def pdf(data, output):
    pypdf = importlib.import_module("pypdf")
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Locked
    for number, page in enumerate(reader.pages, start=1):
        if number > PAGES:
            output.add("\n[The other pages are left out.]\n", heading=True)
            return
        output.add(f"## Page {number}\n\n", heading=True)
        output.add((page.extract_text() or "").strip() + "\n\n")


def check_unpacked(data):
    """Raise `TooLarge` if the members of a zip file declare more than `UNPACKED_BYTES` together.

    `zipfile` never unpacks more than the declared sizes.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > UNPACKED_BYTES:
            raise TooLarge


def docx(data, output):
    check_unpacked(data)
    mammoth = importlib.import_module("mammoth")
    no_pictures = mammoth.images.img_element(lambda image: {})
    made = mammoth.convert_to_html(io.BytesIO(data), convert_image=no_pictures)
    markdown_of(made.value, output)


def html(data, output):
    markdown_of(decoded(data), output)


def markdown_of(text, output):
    soup = importlib.import_module("bs4").BeautifulSoup(text, "html.parser")
    for hidden in soup(["script", "style", "template", "noscript", "img"]):
        hidden.decompose()
    converter = importlib.import_module("markdownify").MarkdownConverter(heading_style="ATX")
    output.add(converter.convert_soup(soup).strip() + "\n")


def rtf(data, output):
    output.add(importlib.import_module("striprtf.striprtf").rtf_to_text(decoded(data)) + "\n")


def xlsx(data, output):
    check_unpacked(data)
    load = importlib.import_module("openpyxl").load_workbook
    book = load(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    for sheet in book.worksheets:
        output.add(f"## {line(sheet.title)}\n\n", heading=True)
        rows = sheet.iter_rows(max_row=ROWS, max_col=COLUMNS, values_only=True)
        table((list(row) for row in rows), output)
        if (sheet.max_row or 0) > ROWS or (sheet.max_column or 0) > COLUMNS:
            output.add(
                f"[Of {sheet.max_row} rows and {sheet.max_column} columns the first "
                f"{ROWS} and {COLUMNS} are shown.]\n\n",
                heading=True,
            )


def pptx(data, output):
    check_unpacked(data)
    for number, slide in enumerate(
        importlib.import_module("pptx").Presentation(io.BytesIO(data)).slides, start=1
    ):
        output.add(f"## Slide {number}\n\n", heading=True)
        for shape in slide.shapes:
            if shape.has_text_frame and shape.text_frame.text.strip():
                output.add(shape.text_frame.text.replace("\v", "\n").strip() + "\n\n")
            elif getattr(shape, "has_table", False) and shape.has_table:
                table(([cell.text for cell in row.cells] for row in shape.table.rows), output)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            if notes:
                output.add(f"Notes: {notes}\n\n")


def table(rows, output):
    """Write rows of values as a Markdown table. The heading is the first row with content.

    Leaves out empty rows before the heading, and empty cells at the end of a row. None is an empty
    cell.
    """
    width = 0
    for row in rows:
        cells = ["" if value is None else line(str(value)) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells and not width:
            continue
        cells += [""] * (width - len(cells))
        output.add(f"| {' | '.join(cells)} |\n")
        if not width:
            width = len(cells)
            output.add("|" + " --- |" * width + "\n", heading=True)
    output.add("\n")


def line(text):
    return " ".join(text.split()).replace("|", "\\|")


def decoded(data):
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


READERS = {"pdf": pdf, "docx": docx, "xlsx": xlsx, "pptx": pptx, "html": html, "rtf": rtf}


def main():
    warnings.simplefilter("ignore")
    data, output = sys.stdin.buffer.read(), Output()
    try:
        READERS[os.environ["VEL_READER"]](data, output)
    except Enough:
        pass
    except Locked:
        return LOCKED
    except TooLarge:
        return TOO_LARGE
    except ModuleNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001  # caused by a malicious file
        if "password" in str(error).lower() or "encrypt" in type(error).__name__.lower():
            return LOCKED
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return DAMAGED
    if not output.has_text:
        return EMPTY
    sys.stdout.buffer.write("".join(output.parts).encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
