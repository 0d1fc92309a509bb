"""The result of a statement as data, as a Markdown table and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CELL_CHARACTERS = 200
"""Characters of a cell in a Markdown table."""

Cell = str | int | float | bool | None
"""A value as text. For programs, cells also have other types, in lists and dictionaries too."""


@dataclass(frozen=True)
class Pairs:
    """A dictionary on its way from a helper. JSON's own keys are only texts."""

    pairs: list[tuple[Any, Any]]


@dataclass(frozen=True)
class QueryResult:
    """The rows of a statement, within the limits; `truncated` if there are more rows.

    `columns` are unique: a second `id` is `id_2`. `values` are the rows, in their order. Numbers
    and truth values are Python's; everything else is the database's own text, so that dates,
    decimals, arrays and JSON are exact. Of a `native` target, all values are Python's.
    """

    columns: tuple[str, ...] = ()
    values: Sequence[tuple[Cell, ...]] = ()
    truncated: bool = False
    error: str | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> list[dict[str, Cell]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]

    @property
    def row_count(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "rows": self.rows,
            "row_count": self.row_count,
            "truncated": self.truncated,
            "success": self.error is None,
            "error": self.error,
        }

    def to_markdown_table(self, max_rows: int = 20) -> str:
        if self.error is not None:
            return f"Error: {self.error}"
        if not self.columns:
            return "No results"
        lines = [_line(self.columns), "|" + " --- |" * len(self.columns)]
        lines += [_line([shown(value) for value in row]) for row in self.values[:max_rows]]
        if not self.values:
            lines.append("\nNo rows")
        elif self.row_count > max_rows:
            lines.append(f"\nShowing {max_rows} of {self.row_count} rows")
        return "\n".join(lines)

    def to_csv(self) -> bytes:
        """Return UTF-8 with a header. NULL is an empty field, an empty text is `""`."""
        text = io.StringIO()
        plain = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        plain.writerow(self.columns)
        for row in self.values:
            text.write(",".join(_field(value) for value in row) + "\n")
        return text.getvalue().encode(errors="replace")


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns' names, with a number for repeated ones."""
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 2
        while candidate in taken or (candidate != name and candidate in names):
            candidate, number = f"{name}_{number}", number + 1
        taken.add(candidate)
        unique.append(candidate)
    return tuple(unique)


def size_of(row: Sequence[Any]) -> int:
    """Return the approximate length of the row as text, in bytes, with separators."""
    return sum(map(_size_of, row)) + len(row)


def _size_of(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode(errors="replace"))
    if value is None or isinstance(value, bool | float):
        return 8
    if isinstance(value, int):
        return max(8, value.bit_length() // 8)
    if isinstance(value, bytes):
        return 2 * len(value) + 8
    if isinstance(value, list | tuple):
        return size_of(value) + 8
    if isinstance(value, Pairs):
        return size_of(value.pairs) + 16
    return max(8, len(str(value)))  # a decimal, a date or a time


def shown(value: Cell) -> str:
    """Return a value as text. A long one is cut to `CELL_CHARACTERS` characters, with a note."""
    if value is None:
        return "NULL"
    text = str(value)
    if len(text) > CELL_CHARACTERS:
        text = f"{text[:CELL_CHARACTERS]}… ({len(text):,} characters)"
    return text


def _line(cells: Sequence[str]) -> str:
    safe = (cell.replace("|", "\\|").replace("\r", " ").replace("\n", " ") for cell in cells)
    return "| " + " | ".join(safe) + " |"


def _field(value: Cell) -> str:
    if value is None:
        return ""
    text = str(value)
    if text == "" or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
