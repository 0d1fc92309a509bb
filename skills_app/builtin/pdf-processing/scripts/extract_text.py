#!/usr/bin/env python3
"""Print the text of a PDF, page by page.

The builtin engine needs no package. --engine pypdf and --engine pdftotext use another one if it is
installed. The output names the engine and the parts that it could not read.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys

from outcome import MISSING_PACKAGE, NOTHING, UNREADABLE, Stop, deliver, input_file, run
from pdf_reader.content import PageText, read_page
from pdf_reader.document import Document
from pdf_reader.layout import text_in_drawing_order, text_in_place
from pdf_reader.opening import add_arguments, chosen_pages, has_pypdf, open_document


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_arguments(parser)
    parser.add_argument(
        "--layout", action="store_true", help="keep the columns and gaps of the page"
    )
    parser.add_argument(
        "--engine", choices=["builtin", "pypdf", "pdftotext"], default="builtin",
        help="the reader of the text; builtin needs no package",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="pages, engine and notes as JSON")
    given = parser.parse_args()
    result = {
        "builtin": _by_builtin,
        "pypdf": _by_pypdf,
        "pdftotext": _by_pdftotext,
    }[given.engine](given)
    _print(given, result)
    return 0 if any(page["text"] for page in result["pages"]) else NOTHING


def _print(given: argparse.Namespace, result: dict) -> None:
    file = input_file(given.file)
    pages, count = result["pages"], result["page_count"]
    empty = [page["page"] for page in pages if not page["text"]]
    if not pages:
        result["notes"].append("The file has no pages.")
    elif empty and len(empty) == len(pages):
        result["notes"].append(
            "There is no text in these pages: a scan, or pictures of text. They need OCR, which "
            "is not part of this skill."
        )
    elif empty:
        result["notes"].append(f"Pages without text: {', '.join(map(str, empty))}.")
    if given.json:
        deliver(json.dumps(result, ensure_ascii=False, indent=2) + "\n", given.output, file)
        return
    parts = [f"--- page {page['page']} of {count} ---\n{page['text']}\n" for page in pages]
    deliver("\n".join(parts), given.output, file)
    print(f"engine: {result['engine']}", file=sys.stderr)
    for note in result["notes"]:
        print(f"note: {note}", file=sys.stderr)


def _by_builtin(given: argparse.Namespace) -> dict:
    _, document = open_document(given.file, given.password)
    layout = text_in_place if given.layout else text_in_drawing_order
    chosen = chosen_pages(given.pages, len(document.pages))
    read = [read_page(document, document.pages[number - 1]) for number in chosen]
    pages = [
        {"page": number, "text": layout(page.characters), "pictures": page.pictures}
        for number, page in zip(chosen, read, strict=True)
    ]
    notes = _notes(document, dict(zip(chosen, read, strict=True)))
    return _result(given, "builtin", len(document.pages), pages, notes)


def _notes(document: Document, read: dict[int, PageText]) -> list[str]:
    notes = list(document.notes)
    for number, page in read.items():
        notes += [f"Page {number}: {problem}" for problem in dict.fromkeys(page.problems)]
        if page.unknown:
            notes.append(
                f"Page {number}: {page.unknown} characters have no known meaning and are shown as "
                "\ufffd. Look at the page before you rely on it."
            )
        if page.invisible:
            notes.append(
                f"Page {number}: {page.invisible} characters are not visible on the page (the "
                "text layer of a scan, or hidden text)."
            )
    return notes


def _by_pypdf(given: argparse.Namespace) -> dict:
    if not has_pypdf():
        raise Stop("pypdf is not in this agent's toolbox. Use --engine builtin.", MISSING_PACKAGE)
    import pypdf  # noqa: PLC0415  # only some toolboxes have it

    mode = "layout" if given.layout else "plain"
    try:
        reader = pypdf.PdfReader(input_file(given.file), password=given.password or None)
        chosen = chosen_pages(given.pages, len(reader.pages))
        pages = [
            {"page": at, "text": reader.pages[at - 1].extract_text(extraction_mode=mode).strip()}
            for at in chosen
        ]
    except Stop:
        raise
    except Exception as problem:  # noqa: BLE001  # whatever a foreign parser makes of damage
        raise Stop(
            f"{given.file}: pypdf cannot read it ({problem}). Use --engine builtin.", UNREADABLE
        ) from None
    return _result(given, f"pypdf {pypdf.__version__}", len(reader.pages), pages, [])


def _by_pdftotext(given: argparse.Namespace) -> dict:
    program = shutil.which("pdftotext")
    if program is None:
        raise Stop("pdftotext is not installed here. Use --engine builtin.", MISSING_PACKAGE)
    command = [program, "-enc", "UTF-8", *(["-layout"] if given.layout else [])]
    if given.password:
        command += ["-upw", given.password]
    done = subprocess.run([*command, str(input_file(given.file)), "-"], capture_output=True)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise Stop(f"{given.file}: pdftotext cannot read it ({said}).", UNREADABLE)
    texts = done.stdout.decode("utf-8", "replace").split("\f")[:-1]
    pages = [
        {"page": at, "text": texts[at - 1].strip("\n")}
        for at in chosen_pages(given.pages, len(texts))
    ]
    return _result(given, "pdftotext", len(texts), pages, [])


def _result(given: argparse.Namespace, engine: str, count: int, pages: list, notes: list) -> dict:
    return {
        "file": given.file,
        "engine": engine,
        "page_count": count,
        "pages": pages,
        "notes": notes,
    }


if __name__ == "__main__":
    run(main)
