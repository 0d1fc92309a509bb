#!/usr/bin/env python3
"""Rewrite a CSV file as other programs expect it: UTF-8, commas, one header, even rows.

Cells keep their text without spaces around it. --typed also writes numbers with a decimal point
and dates as YYYY-MM-DD.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from datetime import datetime
from pathlib import Path

import csv_source
import reading
from outcome import WRONG_CALL, Stop, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    csv_source.add_arguments(parser)
    reading.add_arguments(parser)
    parser.add_argument("--typed", action="store_true", help="numbers and dates in one notation")
    given = parser.parse_args()
    if not given.output:
        raise Stop("Give --output, such as /sandbox/outputs/clean.csv.", WRONG_CALL)
    source = csv_source.open_source(given)
    cells = reading.cell_reader(source, given)
    out = _create(given.output, source)
    with out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(source.header)
        for row in source:
            if given.typed:
                writer.writerow([_typed(cells.read(cell)[1], cell) for cell in row])
            else:
                writer.writerow([cell.strip() for cell in row])
    print(f"wrote {given.output}: {source.rows:,} rows", file=sys.stderr)
    for note in source.all_notes():
        print(f"note: {note}", file=sys.stderr)
    return 0


def _create(output: str, source: csv_source.Source) -> io.TextIOWrapper:
    place = Path(output)
    if place.exists() and place.samefile(source.path):
        raise Stop(f"{output} is the input. Write to /sandbox/outputs instead.", WRONG_CALL)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return open(place, "w", encoding="utf-8", newline="")
    except OSError as error:
        raise Stop(
            f"{output} cannot be written ({error.strerror}). Write to /sandbox/outputs.", WRONG_CALL
        ) from None


def _typed(value: object, cell: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # `repr` keeps all digits.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        at_midnight = (value.hour, value.minute, value.second) == (0, 0, 0)
        return value.strftime("%Y-%m-%d") if at_midnight else value.isoformat()
    return cell.strip()


if __name__ == "__main__":
    run(main)
