"""Decide by a file's first rows how to read its cells."""

from __future__ import annotations

import argparse
from itertools import islice

from cells import CellReader, find_day_first, find_decimal, has_unclear_dates
from csv_source import Source

ROWS_LOOKED_AT = 5_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--decimal", choices=[".", ","], help="default: detected")
    parser.add_argument("--day-first", action="store_true", help="03/04/2024 is the third of April")
    parser.add_argument(
        "--month-first", action="store_true", help="03/04/2024 is the fourth of March"
    )


def cell_reader(source: Source, given: argparse.Namespace) -> CellReader:
    """Return the reader for the cells of a file. Uncertain decisions are added to its notes."""
    cells = [cell for row in islice(source, ROWS_LOOKED_AT) for cell in row]
    decimal = given.decimal or find_decimal(cells)
    if given.day_first or given.month_first:
        return CellReader(decimal, day_first=given.day_first)
    day_first = find_day_first(cells)
    if day_first is None and has_unclear_dates(cells):
        source.notes.append(
            "Dates such as 03/04/2024 were read with the month first: the file's first "
            f"{ROWS_LOOKED_AT:,} rows do not show the order. Give --day-first or --month-first."
        )
    return CellReader(decimal, day_first=bool(day_first))
