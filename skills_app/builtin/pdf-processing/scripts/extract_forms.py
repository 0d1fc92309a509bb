#!/usr/bin/env python3
"""List the fields of a PDF form with their values: text, boxes, choices, signatures."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from dataclasses import asdict

from outcome import NOTHING, UNREADABLE, Stop, deliver, run
from pdf_reader.errors import PdfError
from pdf_reader.forms import Field, has_xfa, read_fields
from pdf_reader.opening import add_arguments, open_document

_XFA = "The file also has an XFA form, which may contain more than these fields."
_ONLY_XFA = "The file has only an XFA form, which this skill cannot read."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, pages=False)
    parser.add_argument(
        "--format", choices=["text", "json", "csv"], default="text", help="default: text"
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format")
    parser.add_argument("--filled", action="store_true", help="only fields that have a value")
    given = parser.parse_args()
    file, document = open_document(given.file, given.password)
    try:
        fields = read_fields(document)
    except PdfError as problem:
        raise Stop(f"{given.file}: {problem}", UNREADABLE) from None
    notes = list(document.notes)
    if has_xfa(document):
        notes.append(_XFA if fields else _ONLY_XFA)
    if not fields:
        notes.append("The file has no form fields. For its text use extract_text.py.")
    shown = [
        field for field in fields if not given.filled or field.value not in (None, False, "", [])
    ]
    deliver({"text": _text, "json": _json, "csv": _csv}[given.format](given, shown, notes),
            given.output, file)  # fmt: skip
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return 0 if fields else NOTHING


def _json(given: argparse.Namespace, fields: list[Field], notes: list[str]) -> str:
    result = {
        "file": given.file,
        "field_count": len(fields),
        "fields": [asdict(field) for field in fields],
        "notes": notes,
    }
    return json.dumps(result, ensure_ascii=False, indent=2) + "\n"


def _text(given: argparse.Namespace, fields: list[Field], notes: list[str]) -> str:
    lines = []
    for field in fields:
        page = f", page {field.page}" if field.page else ""
        marks = ", required" if field.required else ""
        lines.append(f"{field.name} ({field.kind}{page}{marks}): {_shown(field.value)}")
    return "".join(line + "\n" for line in lines)


def _csv(given: argparse.Namespace, fields: list[Field], notes: list[str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "kind", "page", "value", "options", "label", "read_only", "required"])
    for field in fields:
        value = "" if field.value is None else _shown(field.value)
        options = "; ".join(field.options)
        writer.writerow([field.name, field.kind, field.page, value, options, field.label,
                         field.read_only, field.required])  # fmt: skip
    return out.getvalue()


def _shown(value: str | list[str] | bool | None) -> str:
    if value is None:
        return "(empty)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, list) else " ".join(value.split())


if __name__ == "__main__":
    run(main)
