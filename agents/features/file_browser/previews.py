"""Previews of files: what a page can show without running or rendering foreign code."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import Thread
from agents.review.json_text import text_of
from agents.services.files.shown_documents import MOST_BYTES, READERS, document_text
from agents.services.files.shown_pictures import is_picture, is_shown, why_not_shown
from agents.web.markdown import markdown_tree
from sandbox.backends.protocol import OpenedFile

Kind = Literal["text", "table", "markdown", "picture", "pages", "none"]

TEXT_BYTES = 256_000
"""Longer texts are cut."""
TABLE_BYTES = 1_000_000
MOST_ROWS = 500
MOST_COLUMNS = 50
CELL_CHARACTERS = 500
PICTURE_BYTES = 20_000_000
DOCUMENT_NOTE = _("The text of the document, without its layout. Download it to see the original.")

_LANGUAGES = {
    "c": "c",
    "cfg": "ini",
    "css": "css",
    "diff": "diff",
    "go": "go",
    "html": "xml",
    "ini": "ini",
    "ipynb": "json",
    "java": "java",
    "js": "javascript",
    "json": "json",
    "jsonl": "json",
    "md": "markdown",
    "mjs": "javascript",
    "patch": "diff",
    "py": "python",
    "r": "r",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "sql": "sql",
    "svg": "xml",
    "toml": "ini",
    "ts": "typescript",
    "xml": "xml",
    "yaml": "yaml",
    "yml": "yaml",
}


@dataclass(frozen=True, slots=True)
class Table:
    """The start of a CSV or TSV file. The first row with a cell is the heading.

    `is_cut`: there are more rows. Empty rows are omitted. Long rows and long cells are cut.
    """

    heading: list[str]
    rows: list[list[str]]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """The content of a file as a page shows it.

    `note` says what the preview leaves out, or why there is none.
    """

    kind: Kind
    text: str = ""
    language: str = ""
    table: Table | None = None
    tree: list[Any] = field(default_factory=list)
    """Blocks of Markdown: see `agents.web.markdown`."""
    note: str = ""


def preview_of(path: str, opened: OpenedFile, thread: Thread) -> Preview:
    """Return the preview of an open file.

    The extension decides on the kind. A table or Markdown that cannot be read as such is shown as
    text, and a file that is not UTF-8 has no preview. Documents are read in a sandbox with the
    account of `thread`, which can take some seconds. Does not read pictures, and closes the stream
    of all other files.
    """
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    if is_picture(path):
        return _picture(path, opened.stat.size)
    if extension in READERS:
        return _document(READERS[extension], opened, thread)
    is_table = extension in ("csv", "tsv")
    limit = TABLE_BYTES if is_table else TEXT_BYTES
    with opened.stream as stream:
        data = stream.read(limit + 1)
    note = ""
    if len(data) > limit:
        first = number_format(limit, force_grouping=True)
        note = gettext("Only the first %(first)s bytes are shown.") % {"first": first}
    text = _text(data[:limit], is_cut=bool(note))
    if text is None:
        return Preview(
            "none", note=gettext("There is no preview for this kind of file. Download it.")
        )
    if is_table:
        table = _table(text, "\t" if extension == "tsv" else "", is_cut=bool(note))
        if table is not None:
            return Preview("table", table=table, note=note)
    if extension in ("md", "markdown") and not note:
        tree = markdown_tree(text, _no_link, _no_link)
        if tree is not None:
            return Preview("markdown", text=text, tree=tree)
    if extension == "json" and not note:
        text = _indented(text)
    return Preview("text", text=text, language=_LANGUAGES.get(extension, ""), note=note)


def sorted_rows(table: Table, column: int, *, descending: bool) -> list[list[str]]:
    """Return the rows sorted by a column, from 0: numbers by value, texts without case.

    Numbers come before texts, and with `descending` after them. Empty cells and NaN come last in
    both orders. Rows with equal cells keep their order.
    """
    keys = [(_sort_key(row[column] if column < len(row) else ""), row) for row in table.rows]
    filled = [(key, row) for key, row in keys if key is not None]
    filled.sort(key=lambda pair: pair[0], reverse=descending)
    return [row for _, row in filled] + [row for key, row in keys if key is None]


def _sort_key(cell: str) -> tuple[int, float, str] | None:
    """Return the key of a cell; None for an empty one and NaN, which has no order."""
    if not cell.strip():
        return None
    try:
        value = float(cell.replace(",", ""))
    except ValueError:
        return (1, 0.0, cell.casefold())
    return None if math.isnan(value) else (0, value, "")


def _picture(path: str, size: int) -> Preview:
    if size > PICTURE_BYTES:
        return Preview("none", note=gettext("The picture is too large for a preview. Download it."))
    if not is_shown(path):
        return Preview("none", note=why_not_shown())
    return Preview("picture")


def _document(reader: str, opened: OpenedFile, thread: Thread) -> Preview:
    if opened.stat.size > MOST_BYTES:
        return Preview(
            "none", note=gettext("The document is too large for a preview. Download it.")
        )
    with opened.stream as stream:
        data = stream.read(MOST_BYTES + 1)
    text, problem = document_text(thread, reader, data)
    if problem:
        return Preview("none", note=problem)
    tree = markdown_tree(text, _no_link, _no_link)
    kind: Kind = "text" if tree is None else "markdown"
    return Preview(kind, text, "markdown", tree=tree or [], note=str(DOCUMENT_NOTE))


def _text(data: bytes, *, is_cut: bool) -> str | None:
    """Return the data as text, or None if it is not UTF-8 text."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # The cut can be inside of a character.
        if is_cut and error.start >= len(data) - 3:
            return data[: error.start].decode()
        return None


def _table(text: str, delimiter: str, *, is_cut: bool) -> Table | None:
    """Return the text as a table, or None if it does not look like one."""
    if not delimiter:
        first = text[:4_000].partition("\n")[0]
        delimiter = max(",;\t|", key=first.count)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                rows.append([cell[:CELL_CHARACTERS] for cell in row[:MOST_COLUMNS]])
            if len(rows) > MOST_ROWS + 1:
                break
    except csv.Error:
        return None
    if len(rows) < 2:
        return None
    return Table(rows[0], rows[1 : MOST_ROWS + 1], is_cut or len(rows) > MOST_ROWS + 1)


def _indented(text: str) -> str:
    """Return JSON with indentation, or the text itself if it is not valid JSON.

    A deep value stays on one line: its indentation could be many times as long as the text.
    """
    try:
        value = json.loads(text)
        return text if isinstance(value, str) else text_of(value, 4 * TEXT_BYTES)
    except (ValueError, RecursionError):
        return text


def _no_link(name: str) -> None:
    return None
