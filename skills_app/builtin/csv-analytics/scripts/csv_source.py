"""Read a CSV file: its encoding, delimiter, header and uneven rows.

Rows are read one by one, so a file may be larger than the memory.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dialect import (
    SAMPLE_BYTES,
    find_delimiter,
    find_encoding,
    is_header,
    lines_to_skip,
    make_header,
    named_delimiter,
    sample_rows,
    title_rows,
)
from outcome import NOTHING, UNREADABLE, WRONG_CALL, Stop, input_file

MAX_FIELD = 10 * 1024 * 1024


@dataclass
class Source:
    """A CSV file and its format. Iterate over it for the rows.

    `notes` lists decisions and irregularities. `rows` counts the rows read, `ragged` those with
    more or fewer cells than the header. Both are complete after the last row.
    """

    path: Path
    encoding: str
    delimiter: str
    header: list[str]
    skipped: int
    has_header: bool
    notes: list[str] = field(default_factory=list)
    rows: int = 0
    ragged: int = 0
    first_ragged_line: int = 0

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the rows, each with as many cells as the header.

        Short rows are filled and long ones cut. `ragged` counts both. Empty lines are skipped.
        """
        width = len(self.header)
        self.rows = self.ragged = self.first_ragged_line = 0
        with self._open() as text:
            reader = csv.reader(_without_nul(text), delimiter=self.delimiter)
            try:
                for _ in range(self.skipped + self.has_header):
                    next(reader, None)
                for row in reader:
                    if not row:
                        continue
                    self.rows += 1
                    if len(row) != width:
                        self.ragged += 1
                        self.first_ragged_line = self.first_ragged_line or reader.line_num
                        row = (row + [""] * width)[:width]
                    yield row
            except csv.Error as error:
                raise Stop(
                    f"{self.path} cannot be read near line {reader.line_num:,} ({error}). A quote "
                    "is probably never closed there.",
                    UNREADABLE,
                ) from None

    def column(self, name: str) -> int:
        """Return the index of the column `name`. Raises `Stop` with the existing names."""
        if name in self.header:
            return self.header.index(name)
        folded = [each.casefold() for each in self.header]
        if folded.count(name.casefold()) == 1:
            return folded.index(name.casefold())
        listed = ", ".join(self.header[:40]) + (", …" if len(self.header) > 40 else "")
        raise Stop(f"There is no column {name!r}. The columns are: {listed}.", WRONG_CALL)

    def as_json(self) -> dict:
        return {
            "file": str(self.path),
            "encoding": self.encoding,
            "delimiter": self.delimiter,
            "has_header": self.has_header,
            "title_rows_skipped": self.skipped,
            "columns": len(self.header),
            "rows": self.rows,
            "rows_of_another_length": self.ragged,
        }

    def all_notes(self) -> list[str]:
        notes = list(self.notes)
        if self.ragged:
            notes.append(
                f"{self.ragged:,} rows have more or fewer cells than the header (the first ends "
                f"in line {self.first_ragged_line:,}); missing cells count as empty, extra "
                "cells are left out."
            )
        return notes

    def _open(self) -> io.TextIOWrapper:
        return open(self.path, encoding=self.encoding, errors="replace", newline="")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the CSV file")
    parser.add_argument("--encoding", help="such as utf-8 or cp1252; default: detected")
    parser.add_argument("--delimiter", help="such as ';' or 'tab'; default: detected")
    parser.add_argument("--no-header", action="store_true", help="the first row holds data")
    parser.add_argument("--skip", type=int, help="rows above the header; default: detected")
    parser.add_argument("--output", help="write here instead of to stdout")


def open_source(given: argparse.Namespace) -> Source:
    """Return the source for the file in the arguments. Raises `Stop` if it is empty or not text."""
    csv.field_size_limit(MAX_FIELD)
    path = input_file(given.file)
    if path.stat().st_size == 0:
        raise Stop(f"{given.file} is empty.", NOTHING)
    notes: list[str] = []
    encoding = given.encoding or find_encoding(path, notes)
    try:
        codecs.lookup(encoding)
        with open(path, encoding=encoding, errors="replace", newline="") as text:
            sample = text.read(SAMPLE_BYTES)
    except (LookupError, UnicodeError) as error:
        raise Stop(f"--encoding {encoding} does not work: {error}", WRONG_CALL) from None
    delimiter = named_delimiter(given.delimiter) if given.delimiter else find_delimiter(sample)
    rows = sample_rows(sample, delimiter)
    if not rows:
        raise Stop(f"{given.file} holds no rows.", NOTHING)
    skipped = given.skip if given.skip is not None else title_rows(rows)
    if skipped < 0 or (skipped and skipped >= len(rows)):
        raise Stop(f"--skip {skipped}: there are not that many rows.", WRONG_CALL)
    if skipped and given.skip is None:
        notes.append(f"The first {skipped} rows look like a title and are left out (--skip 0).")
    has_header = not given.no_header and is_header(rows[skipped], notes)
    header = make_header(rows[skipped], has_header, notes)
    # The csv module counts empty lines above the header as rows, so count them here too.
    return Source(path, encoding, delimiter, header, lines_to_skip(sample, delimiter, skipped),
                  has_header, notes)  # fmt: skip


def _without_nul(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line.replace("\0", "") if "\0" in line else line
