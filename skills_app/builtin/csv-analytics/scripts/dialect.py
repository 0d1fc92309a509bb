"""Detect the format of a CSV file: encoding, delimiter, title rows, header."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from pathlib import Path

from cells import looks_typed
from outcome import UNREADABLE, WRONG_CALL, Stop

DELIMITERS = ",;\t|"
SAMPLE_BYTES = 256 * 1024
SAMPLE_ROWS = 200
MAX_TITLE_ROWS = 10
_BOMS = [
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]


def named_delimiter(delimiter: str) -> str:
    delimiter = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(delimiter, delimiter)
    if len(delimiter) != 1:
        raise Stop(f"--delimiter {delimiter!r} must be one character.", WRONG_CALL)
    return delimiter


def find_encoding(path: Path, notes: list[str]) -> str:
    with open(path, "rb") as file:
        start = file.read(4096)
        for mark, encoding in _BOMS:
            if start.startswith(mark):
                return encoding
        _refuse_other_kinds(path, start)
        nul = start.count(b"\0")
        if nul > len(start) // 4:
            return "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"
        decoder = codecs.getincrementaldecoder("utf-8")()
        block, read = start, 0
        while block:
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                notes.append(
                    f"It is not UTF-8 (byte {read + error.start:,}); it was read as cp1252. If "
                    "letters look wrong, give --encoding."
                )
                return "cp1252"
            read += len(block)
            block = file.read(1 << 20)
    return "utf-8"


def _refuse_other_kinds(path: Path, start: bytes) -> None:
    known = {
        b"PK\x03\x04": "an Excel workbook or a zip archive: with pandas and openpyxl in the "
        "toolbox use pandas.read_excel; otherwise ask for a CSV file",
        b"\xd0\xcf\x11\xe0": "an old Excel workbook: ask for a CSV file",
        b"%PDF": "a PDF: use the skill pdf-processing",
        b"\x1f\x8b": "compressed: unpack it with gunzip -c FILE > /sandbox/workspace/data.csv",
        b"SQLite format 3": "a SQLite database: use the skill data-query",
        b"PAR1": "a Parquet file: it needs pandas and pyarrow in the toolbox",
    }
    for mark, words in known.items():
        if start.startswith(mark):
            raise Stop(f"{path} is not a CSV file but {words}.", UNREADABLE)


def sample_rows(sample: str, delimiter: str) -> list[list[str]]:
    """Return the complete rows at the start of the sample, without empty ones.

    There are at most `SAMPLE_ROWS`.
    """
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(sample.replace("\0", ""), newline=""), delimiter=delimiter)
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) > SAMPLE_ROWS:
                return rows[:SAMPLE_ROWS]
    except csv.Error:
        return rows
    # The last row may be cut off.
    return rows[:-1] if len(sample) >= SAMPLE_BYTES and len(rows) > 1 else rows


def find_delimiter(sample: str) -> str:
    best, best_score = ",", (-1.0, -1.0, -1)
    for delimiter in DELIMITERS:
        rows = sample_rows(sample, delimiter)
        widths = Counter(len(row) for row in rows)
        if not widths:
            continue
        # Ignore rows with one cell: they are titles or notes and do not show the delimiter.
        wide = Counter({width: count for width, count in widths.items() if width > 1})
        if not wide:
            continue
        width, count = wide.most_common(1)[0]
        cells = [cell for row in rows[1:] for cell in row if len(row) == width]
        typed = sum(looks_typed(cell) for cell in cells) / max(1, len(cells))
        score = (round(count / len(rows), 1), round(typed, 2), width)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def title_rows(rows: list[list[str]]) -> int:
    """Return the number of title rows above the table. They have one cell, other rows several."""
    width = Counter(len(row) for row in rows).most_common(1)[0][0]
    if width < 2:
        return 0
    for at, row in enumerate(rows[: MAX_TITLE_ROWS + 1]):
        if sum(bool(cell.strip()) for cell in row) > 1:
            return at
    return 0


def lines_to_skip(sample: str, delimiter: str, rows: int) -> int:
    """Return the number of records before the header, as the csv module counts them.

    Empty lines are records too. `rows` is the same number without empty lines. The result is 0 if
    the sample ends before the header.
    """
    reader = csv.reader(io.StringIO(sample.replace("\0", ""), newline=""), delimiter=delimiter)
    found = 0
    for at, row in enumerate(reader):
        if row:
            if found == rows:
                return at
            found += 1
    return 0


def is_header(row: list[str], notes: list[str]) -> bool:
    typed = [cell for cell in row if looks_typed(cell)]
    if typed and len(typed) * 2 >= len(row):
        notes.append("The first row looks like data, so the columns got names: column_1, ….")
        return False
    return True


def make_header(row: list[str], has_header: bool, notes: list[str]) -> list[str]:
    if not has_header:
        return [f"column_{at}" for at in range(1, len(row) + 1)]
    names: list[str] = []
    for at, cell in enumerate(row, 1):
        base = name = " ".join(cell.split()) or f"column_{at}"
        number = 2
        while name in names:
            name = f"{base}_{number}"
            number += 1
        if name != cell:
            notes.append(f"Column {at} was {cell!r} and is called {name!r} here.")
        names.append(name)
    return names
