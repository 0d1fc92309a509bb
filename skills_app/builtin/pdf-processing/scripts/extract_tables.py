#!/usr/bin/env python3
"""Find tables in a PDF by the alignment of their text; print them as CSV, JSON or Markdown.

Lines around cells are ignored, so check the result against the page's text.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from pathlib import Path

from outcome import NOTHING, WRONG_CALL, Stop, deliver, run
from pdf_reader.content import read_page
from pdf_reader.layout import segments_by_line
from pdf_reader.opening import add_arguments, chosen_pages, open_document
from pdf_reader.tables import find_tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_arguments(parser)
    parser.add_argument(
        "--format", choices=["markdown", "json", "csv"], default="markdown",
        help="default: markdown; csv puts an empty line between tables",
    )  # fmt: skip
    parser.add_argument("--json", action="store_const", const="json", dest="format")
    parser.add_argument("--output-dir", help="write each table to its own CSV file here")
    parser.add_argument("--min-rows", type=int, default=2, help="rows of a table; default: 2")
    given = parser.parse_args()
    if given.min_rows < 1:
        raise Stop("--min-rows must be 1 or more.", WRONG_CALL)
    file, document = open_document(given.file, given.password)
    tables = []
    for number in chosen_pages(given.pages, len(document.pages)):
        page = read_page(document, document.pages[number - 1])
        rows = segments_by_line(page.characters)
        for at, table in enumerate(find_tables(rows, min_rows=given.min_rows), 1):
            tables.append({"page": number, "table": at, "rows": table.rows})
    if given.output_dir:
        for each in tables:
            name = f"page-{each['page']}-table-{each['table']}.csv"
            deliver(_csv([each]), str(Path(given.output_dir) / name), file)
    else:
        text = {"markdown": _markdown, "csv": _csv, "json": lambda found: _json(given, found)}
        deliver(text[given.format](tables), given.output, file)
    for note in document.notes:
        print(f"note: {note}", file=sys.stderr)
    if not tables:
        print("note: No tables were found. Try extract_text.py --layout.", file=sys.stderr)
    return 0 if tables else NOTHING


def _json(given: argparse.Namespace, tables: list[dict]) -> str:
    result = {"file": given.file, "table_count": len(tables), "tables": tables}
    return json.dumps(result, ensure_ascii=False, indent=2) + "\n"


def _csv(tables: list[dict]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for at, table in enumerate(tables):
        if at:
            out.write("\n")
        writer.writerows(table["rows"])
    return out.getvalue()


def _markdown(tables: list[dict]) -> str:
    parts = []
    for table in tables:
        first, *rest = [[cell.replace("|", "\\|") for cell in row] for row in table["rows"]]
        lines = [f"Page {table['page']}, table {table['table']}:", "", f"| {' | '.join(first)} |"]
        lines.append("|" + " --- |" * len(first))
        lines += [f"| {' | '.join(row)} |" for row in rest]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    run(main)
