#!/usr/bin/env python3
"""Describe a PDF: pages, their sizes, title and author, text, pictures, form fields."""

from __future__ import annotations

import argparse
import json
from typing import Any

from outcome import deliver, run
from pdf_reader.content import read_page
from pdf_reader.document import Document
from pdf_reader.forms import has_xfa, read_fields
from pdf_reader.opening import add_arguments, open_document

_POINTS_PER_MM = 72 / 25.4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, pages=False)
    parser.add_argument("--json", action="store_true", help="print the description as JSON")
    given = parser.parse_args()
    file, document = open_document(given.file, given.password)
    pages = []
    for number, page in enumerate(document.pages, 1):
        read = read_page(document, page)
        pages.append(
            {
                "page": number,
                "size_mm": _size(document, page),
                "characters": len(read.characters),
                "pictures": read.pictures,
            }
        )
    result: dict[str, Any] = {
        "file": given.file,
        "bytes": file.stat().st_size,
        "pdf_version": document.version,
        "page_count": len(pages),
        "metadata": document.information,
        "form_fields": len(read_fields(document)),
        "xfa_form": has_xfa(document),
        "pages_without_text": [page["page"] for page in pages if not page["characters"]],
        "pages": pages,
        "notes": document.notes,
    }
    if given.json:
        deliver(json.dumps(result, ensure_ascii=False, indent=2) + "\n", given.output, file)
        return 0
    lines = [f"{key}: {_shown(value)}" for key, value in result.items() if key != "pages"]
    deliver("\n".join(lines) + "\n", given.output, file)
    return 0


def _size(document: Document, page: dict[str, Any]) -> list[float] | None:
    box = document.get(page, "MediaBox")
    if not isinstance(box, list) or len(box) != 4:
        return None
    numbers = [document.resolve(each) for each in box]
    if not all(isinstance(each, (int, float)) for each in numbers):
        return None
    left, bottom, right, top = numbers
    size = [abs(right - left), abs(top - bottom)]
    turned = document.get(page, "Rotate", 0)
    if isinstance(turned, int) and turned % 180:
        size.reverse()
    return [round(each / _POINTS_PER_MM, 1) for each in size]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} {_shown(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value) or "none"
    return " ".join(str(value).split())


if __name__ == "__main__":
    run(main)
